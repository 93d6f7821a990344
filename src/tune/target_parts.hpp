// The parts that open_target() is made of.
#pragma once

#include "ergotune/tune/target.hpp"

namespace ergotune {

/// The target's space, from its problem and constants. Throws UserError for an empty one.
void build_space(Target& target, const TargetOptions& options);
/// Opens devices of this machine.
void open_live(Target& target, const TargetOptions& options);

}  // namespace ergotune
