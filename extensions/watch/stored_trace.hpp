// The power trace of a configuration, where the observer "trace" has left one.
#pragma once

#include <filesystem>
#include <optional>

#include "ergotune/problem.hpp"
#include "measure/energy/power_trace.hpp"

namespace ergotune::serve {

/// Looked for in the folder that the problem's observer names, below the store's folder or where it was asked to lie;
/// nullopt where there is none, or none that can be read.
std::optional<PowerTrace> stored_trace(const Problem& problem, const std::vector<Parameter>& parameters,
                                       const Configuration& configuration, const std::filesystem::path& store);

}  // namespace ergotune::serve
