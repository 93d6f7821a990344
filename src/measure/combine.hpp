// Several measurements of one configuration as one.
#pragma once

#include <vector>

#include "ergotune/measure/measurement.hpp"

namespace ergotune {

/// The mean of independent measurements of one configuration (rounds of a confirmation). Of each quantity and metric the
/// mean, with the larger of two standard errors: the scatter of the rounds, and what the rounds say of themselves.
/// Properties of the compiled code keep their value. A round that failed is returned as it is; one that only could not be
/// measured (Status::unsupported: its energy is lost in noise) speaks against the machine, not the configuration: it is
/// left out, with a warning, as long as another could be. `rounds` must not be empty.
Measurement combine(const std::vector<Measurement>& rounds);

}  // namespace ergotune
