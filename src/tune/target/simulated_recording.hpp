// A whole space on a simulated device, as a recording: what analyses read without a store in between.
#pragma once

#include "store/formats/recording.hpp"

namespace ergotune {

struct Problem;

/// Every configuration of a problem on a simulated device ("sim:a100"). Throws UserError for other devices, and for
/// what open_target() throws it for.
Recording record_simulated(const Problem& problem, const std::string& device);

}  // namespace ergotune
