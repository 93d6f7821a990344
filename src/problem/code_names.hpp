// Names that only compiled code has a value for: registers, occupancy, static_fma ...
#pragma once

#include <string>
#include <vector>

#include "ergotune/problem.hpp"

namespace ergotune {

/// Those that a restriction names and that are no parameter or constant of the problem; empty for a restriction that
/// the space can be built with.
std::vector<std::string> code_names_in(const Problem& problem, const Restriction& restriction);
/// Whether a restriction, a metric, the objective or a plan's stage names instructions of the compiled code (static_fma
/// ...).
bool names_instructions(const Problem& problem);
/// The restrictions that the space can be built with.
std::vector<Restriction> restrictions_of_space(const Problem& problem);

}  // namespace ergotune
