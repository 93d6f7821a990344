// Names whose values are properties of the compiled code: registers, occupancy, static_fma ...
#pragma once

#include <string>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

struct Problem;

/// Returns the properties of compiled code that a restriction uses, except names of the problem's own parameters and
/// constants. Empty if the restriction can be applied when the space is built.
std::vector<std::string> code_names_in(const Problem& problem, const Restriction& restriction);
/// True if a restriction, a metric, the objective or a plan's stage uses instruction counts of the compiled code
/// (static_fma ...).
bool names_instructions(const Problem& problem);
/// Returns the restrictions that can be applied when the space is built.
std::vector<Restriction> restrictions_of_space(const Problem& problem);

}  // namespace ergotune
