// What is refused before a target is opened.
#pragma once

#include "store/formats/recording.hpp"
#include "tune/target/target.hpp"

namespace ergotune {

/// Throws UserError: an objective over an unknown quantity would spend the whole budget and find nothing. Names that
/// the problem's metrics explain are not among Objective::quantities(). `recording`: what says it instead of a device;
/// may be null.
void validate_objective_quantities(const SetupOptions& options, const Problem& problem, const Recording* recording);

/// Throws UserError where a metric uses a property that the opened device does not have.
void refuse_unknown_properties(const Problem& problem, const Constants& constants);

}  // namespace ergotune
