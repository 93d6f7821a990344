// A verification callback with an identity, by which sessions tell whether stored results were verified in the same
// way.
#pragma once

#include <string>
#include <vector>

#include "measure/runner.hpp"

namespace ergotune {

/// A Verifier, which open_target() finds in SetupOptions::verifier and adds to the session key.
struct IdentifiedVerifier {
  Verifier verify;
  std::string identity;  ///< equal for callbacks that accept the same outputs
  bool operator()(const std::vector<OutputView>& outputs, std::string& message, double& error) const {
    return verify(outputs, message, error);
  }
};

}  // namespace ergotune
