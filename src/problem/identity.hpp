// What of a problem determines the results of its configurations: how a session finds what was measured
// before.
#pragma once

#include <string>

#include "ergotune/problem.hpp"

namespace ergotune {

/// A document that is the same for two problems exactly when the results of one hold for the other, device
/// and conditions of measuring apart: kernels, arguments, launch, options, constants, parameters and
/// restrictions, verification.
///
/// Of files their contents count, wherever they lie and however they are named: sources and what they include
/// (without comments in C-like languages), files that fill buffers, expected outputs. They are read now.
/// Names of files and of the problem, places, descriptions, settings, objective, metrics, plans and observers do not
/// count (what determines results among settings and observers is part of a session's conditions), nor does how a
/// number or an expression is written. The order of parameters counts: stored configurations are lists of values.
///
/// Functions given in memory (Python) cannot be compared; they decide what is in the space, not how it
/// performs.
std::string identity_of(const Problem& problem);

}  // namespace ergotune
