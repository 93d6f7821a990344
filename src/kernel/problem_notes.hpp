// Finds mistakes of a problem that compile and run, so that no error reports them.
#pragma once

#include <string>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

struct Problem;

/// Returns messages on the sources of the problem's kernels and references, as compiled for a device of `backend`:
/// names that are macros of the problem and are declared or defined again, variables of the device that nothing fills,
/// arguments in another order than the source names them, dynamic shared memory that the launch does not give, and
/// OpenMP directives that no option enables.
std::vector<std::string> source_notes(const Problem& problem, const Constants& constants, const std::string& backend);

/// Returns a message if the problem verifies outputs and no argument is declared as written; empty otherwise.
std::string note_of_outputs(const Problem& problem);

/// Returns a message if the problem names defaults and restrictions exclude the default configuration, with which the
/// best would be compared; empty otherwise.
std::string note_of_default(const Problem& problem, const SearchSpace& space, const Constants& constants);

}  // namespace ergotune
