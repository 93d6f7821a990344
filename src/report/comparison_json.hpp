// A comparison of sessions as JSON: `ergotune compare --json`, and what the page shows.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/comparison.hpp"

namespace ergotune {

/// `names`: what the sessions are called, in their order.
nlohmann::ordered_json comparison_json(const std::vector<std::string>& names,
                                       const std::vector<ComparedSession>& sessions, const Comparison& comparison);

}  // namespace ergotune
