// Restrictions on properties of the compiled code, such as "registers <= 128". They are evaluated after a configuration
// was compiled and before it runs. Also the status of a configuration that does not compile.
#pragma once

#include <exception>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/result.hpp"
#include "ergotune/space.hpp"

namespace ergotune {

struct Problem;

/// Returns a message about the first restriction on compiled code that a configuration violates: `restriction
/// "registers <= 128": its registers are 168`. nullopt if it satisfies all, or if the properties are unknown (a CPU has
/// no register count).
std::optional<std::string> broken_code_restriction(const Problem& problem, const std::vector<Parameter>& parameters,
                                                   const Configuration& configuration, const Constants& constants,
                                                   const std::map<std::string, Quantity>& quantities);

/// Returns unsupported or timeout if the device reports one of these, else compile_error.
Status compile_status(const std::exception& error);

}  // namespace ergotune
