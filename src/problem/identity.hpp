// The identity of a problem: everything that determines the results of its configurations. Sessions find earlier
// results by it.
#pragma once

#include <string>

namespace ergotune {

struct Problem;

/// Returns a document that is equal for two problems exactly when the results of one are valid for the other, on the
/// same device and with the same measurement settings. It covers kernels, arguments, launch, options, constants,
/// parameters, restrictions and verification.
///
/// Files count by their contents, not by their names or places, and are read by this call: sources and the files that
/// they include (without comments in C-like languages), files that fill buffers, and expected outputs. Names of files
/// and of the problem, places, descriptions, settings, objective, metrics, plans and observers are left out (settings
/// and observers that determine results belong to the session's measurement settings), as is the spelling of numbers
/// and expressions. The order of parameters matters, because stored configurations are lists of values.
///
/// Functions given in memory (Python) cannot be compared and are left out; they decide which configurations are in the
/// space, not how these perform.
std::string identity_of(const Problem& problem);

}  // namespace ergotune
