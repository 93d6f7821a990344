// Conversions to JSON, shared by --json of all verbs and the page.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "ergotune/result.hpp"
#include "ergotune/space.hpp"

namespace ergotune {

/// A measurement as JSON: status, quantities with value, standard_error, half_width (of the 95 % interval), n, method,
/// sensor; metrics.
nlohmann::ordered_json to_json(const Measurement& measurement);
nlohmann::ordered_json to_json(const Value& value);
/// {"name": value, ...}
nlohmann::ordered_json to_json(const Constants& values);
nlohmann::ordered_json to_json(const std::vector<Parameter>& parameters, const Configuration& configuration);
/// A finite number, else null.
nlohmann::ordered_json number_or_null(double value);

}  // namespace ergotune
