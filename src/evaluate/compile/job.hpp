// One request on its way through the live evaluator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "evaluate/evaluator.hpp"
#include "power/controls/control.hpp"

namespace ergotune {

struct Job {
  EvaluationRequest request;
  /// Only its outputs are wanted, as a reference.
  bool reference_only = false;
  /// The only device worker that may run it, by number; nullopt: any.
  std::optional<std::size_t> device;
  /// What its execution parameters ask for.
  ControlSetting setting;
  /// Device workers whose devices have refused that setting.
  std::set<std::size_t> refused_by;
  /// It ran under another setting and is being run once more.
  bool again = false;
  /// The runner that compiled it has ended, or its compiler was killed, and it is being compiled once more.
  bool compiled_again = false;
  /// It ran under conditions of the node that the reference on its device did not meet, and is being run once more.
  bool disturbed = false;
  /// Its runner was killed while it ran, and it is being run once more.
  bool killed = false;
  /// Requests that came later and went before it.
  int passed_by = 0;
  /// By kernel of the problem: what the code depends on, and the code once it is there.
  std::vector<std::string> code_keys;
  std::vector<std::shared_ptr<const Binary>> code;
  double compile_seconds = 0;
  double ours = 0;  ///< s of round trips that neither compiler nor kernel used

  bool compiled() const {
    return std::all_of(code.begin(), code.end(), [](const auto& binary) { return binary != nullptr; });
  }
};
using JobPointer = std::shared_ptr<Job>;

}  // namespace ergotune
