// Finds the stored power trace of a configuration, if the observer "trace" has written one.
#pragma once

#include <filesystem>
#include <optional>

#include "ergotune/space.hpp"
#include "measure/energy/power_trace.hpp"

namespace ergotune {
struct Problem;
}  // namespace ergotune

namespace ergotune::serve {

/// Looks in the folder named by the problem's observer, relative to the store's folder or absolute; nullopt if there is
/// no readable trace.
std::optional<PowerTrace> stored_trace(const Problem& problem, const std::vector<Parameter>& parameters,
                                       const Configuration& configuration, const std::filesystem::path& store);

}  // namespace ergotune::serve
