// What a test expects to be thrown.
#pragma once

#include <string>

#include "ergotune/error.hpp"

namespace ergotune {

/// The message of the E that `action` throws; `none` if it throws none.
template <class E = UserError, class Action>
std::string error_of(Action&& action, std::string none = {}) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return none;
}

}  // namespace ergotune
