// A program at a clock or limit, with its own standard streams.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "power/controls/control.hpp"

namespace ergotune::cli {

/// Runs it to its end and puts everything back. Its exit code; 128 and the signal that ended it. Throws UserError for a
/// setting that is refused and a program that is not there.
int run_at(std::unique_ptr<Control> control, ControlQuantity quantity, double value,
           const std::vector<std::string>& command, bool take_over);

}  // namespace ergotune::cli
