// Several measurements of one configuration as one.
#pragma once

#include <vector>

#include "ergotune/result.hpp"

namespace ergotune {

/// The mean of independent measurements of one configuration (rounds of a confirmation). Of each quantity and metric
/// the mean, with the larger of two standard errors: the scatter of the rounds, and what the rounds say of themselves.
/// Properties of the compiled code keep their value. A wrong result is returned as it is. Another round that failed
/// says more about the device's conditions than about the configuration, which worked before: it is left out, with a
/// warning, and returned where no round worked. `rounds` must not be empty.
Measurement combine(const std::vector<Measurement>& rounds);

}  // namespace ergotune
