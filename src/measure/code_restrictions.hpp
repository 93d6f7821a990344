// Restrictions over what the compiler says: "registers <= 128". They hold before a configuration runs, but after it
// compiled.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "ergotune/result.hpp"

namespace ergotune {

/// The first restriction of compiled code that a configuration does not meet, in words: `restriction "registers <=
/// 128": its registers are 168`; nullopt where it meets all, or what they name was not told (a processor has no
/// registers to count).
std::optional<std::string> broken_code_restriction(const Problem& problem, const std::vector<Parameter>& parameters,
                                                   const Configuration& configuration, const Constants& constants,
                                                   const std::map<std::string, Quantity>& quantities);

}  // namespace ergotune
