// Checks before a target is opened.
#pragma once

#include "store/formats/recording.hpp"
#include "tune/target/target.hpp"

namespace ergotune {

/// Throws UserError if the objective uses an unknown quantity: the session would spend its whole budget without a
/// result. Objective::quantities() does not contain the names of the problem's metrics. `recording`: the recording that
/// replaces the device; null for a device.
void validate_objective_quantities(const SetupOptions& options, const Problem& problem, const Recording* recording);

/// Throws UserError where a metric uses a property that the opened device does not have.
void refuse_unknown_properties(const Problem& problem, const Constants& constants);

}  // namespace ergotune
