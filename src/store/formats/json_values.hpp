// Values and measurements as JSON, for columns of the store and parts of exports.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "ergotune/result.hpp"
#include "ergotune/space.hpp"

namespace ergotune {

inline constexpr std::size_t kNotFound = std::string_view::npos;

/// The position after the string whose opening quote is at `at`; kNotFound if it is cut off.
std::size_t after_string(std::string_view text, std::size_t at);
/// The position after the object or list that begins at `at`; kNotFound if it is cut off.
std::size_t after_nested(std::string_view text, std::size_t at);
/// The position of the first character from `at` on that is not white space; the text's size if there is none.
std::size_t skip_space(std::string_view text, std::size_t at);
/// The position of the value of a key of the outermost object; kNotFound if the text does not contain it (yet).
std::size_t top_level_value(std::string_view text, std::string_view key);

using Json = nlohmann::ordered_json;

/// NaN and infinities, which JSON lacks, are written as "nan", "inf", "-inf".
Json number_json(double x);
double number_from(const Json& json);

/// The provenance with this name; nullopt if there is none.
std::optional<Provenance> provenance_named(std::string_view name);

Json value_json(const Value& value);
Value value_from(const Json& json);

std::string configuration_text(const Configuration& configuration);
/// The functions that read a column of the store throw Error if it is damaged.
Configuration configuration_from(const std::string& text);
std::vector<std::string> strings_from(const std::string& text);
std::vector<double> times_from(const std::string& text);

std::string numbers_text(const std::map<std::string, double>& numbers);
std::map<std::string, double> numbers_from(const std::string& text);

/// Standard errors of metrics by name; with degrees of freedom as [standard error, degrees].
std::string metric_errors_text(const Measurement& measurement);
void metric_errors_from(const std::string& text, Measurement& measurement);

std::string quantities_text(const Measurement& measurement);
void quantities_from(const std::string& text, Measurement& measurement);

}  // namespace ergotune
