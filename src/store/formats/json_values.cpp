#include "store/formats/json_values.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/json_text.hpp"
#include "ergotune/error.hpp"

namespace ergotune {

std::size_t after_string(std::string_view text, std::size_t at) {
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return kNotFound;
}

std::size_t after_nested(std::string_view text, std::size_t at) {
  int depth = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    switch (text[i]) {
      case '"':
        i = after_string(text, i);
        if (i == kNotFound) return kNotFound;
        --i;
        break;
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        if (--depth == 0) return i + 1;
        break;
      default:
        break;
    }
  }
  return kNotFound;
}

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t')) ++at;
  return at;
}

std::size_t top_level_value(std::string_view text, std::string_view key) {
  std::size_t at = skip_space(text, 0);
  if (at >= text.size() || text[at] != '{') return kNotFound;
  ++at;
  while (true) {
    at = skip_space(text, at);
    if (at >= text.size() || text[at] != '"') return kNotFound;
    const std::size_t end = after_string(text, at);
    if (end == kNotFound) return kNotFound;
    const std::string_view name = text.substr(at + 1, end - at - 2);
    at = skip_space(text, end);
    if (at >= text.size() || text[at] != ':') return kNotFound;
    at = skip_space(text, at + 1);
    if (at >= text.size()) return kNotFound;
    if (name == key) return at;
    if (text[at] == '{' || text[at] == '[') {
      at = after_nested(text, at);
    } else if (text[at] == '"') {
      at = after_string(text, at);
    } else {
      at = text.find_first_of(",}", at);
    }
    if (at == kNotFound) return kNotFound;
    at = skip_space(text, at);
    if (at >= text.size() || text[at] != ',') return kNotFound;
    ++at;
  }
}

std::optional<Provenance> provenance_named(std::string_view name) {
  for (const Provenance provenance :
       {Provenance::measured, Provenance::replayed, Provenance::simulated, Provenance::modelled})
    if (to_string(provenance) == name) return provenance;
  return std::nullopt;
}

Json number_json(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

double number_from(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const auto word = json.get<std::string>();
  if (word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  if (word != "nan") throw Error("not a number: " + word);
  return std::numeric_limits<double>::quiet_NaN();
}

Json value_json(const Value& value) {
  if (value.is_real() && !std::isfinite(value.as_real())) return Json{{"real", number_json(value.as_real())}};
  return std::visit([](const auto& x) { return Json(x); }, value.data());
}

Value value_from(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_object()) return number_from(json.at("real"));
  return json.get<std::string>();
}

std::string configuration_text(const Configuration& configuration) {
  Json json = Json::array();
  for (const Value& value : configuration) json.push_back(value_json(value));
  return json_text(json);
}

namespace {

/// Parses a text from the store and passes it to `read`. Throws Error if the text is not as ergotune writes it, since
/// its row is damaged.
template <class Read>
void undamaged(const std::string& text, Read&& read) {
  try {
    const auto json = parse_json<Json>(text);
    read(json);
  } catch (const Json::exception&) {
    throw Error("invalid JSON: " + text.substr(0, 60));
  }
}

}  // namespace

Configuration configuration_from(const std::string& text) {
  Configuration configuration;
  undamaged(text, [&](const Json& json) {
    for (const Json& value : json) configuration.push_back(value_from(value));
  });
  return configuration;
}

std::vector<std::string> strings_from(const std::string& text) {
  std::vector<std::string> strings;
  undamaged(text, [&](const Json& json) { strings = json.get<std::vector<std::string>>(); });
  return strings;
}

std::vector<double> times_from(const std::string& text) {
  std::vector<double> times;
  undamaged(text, [&](const Json& json) {
    for (const Json& time : json) times.push_back(number_from(time));
  });
  return times;
}

std::string numbers_text(const std::map<std::string, double>& numbers) {
  Json json = Json::object();
  for (const auto& [name, value] : numbers) json[name] = number_json(value);
  return json_text(json);
}

std::map<std::string, double> numbers_from(const std::string& text) {
  std::map<std::string, double> numbers;
  undamaged(text, [&](const Json& json) {
    for (const auto& [name, value] : json.items()) numbers[name] = number_from(value);
  });
  return numbers;
}

std::string metric_errors_text(const Measurement& measurement) {
  Json json = Json::object();
  for (const auto& [name, error] : measurement.metric_errors) {
    const double degrees = measurement.degrees(name);
    json[name] = degrees > 0 ? Json{number_json(error), degrees} : number_json(error);
  }
  return json_text(json);
}

void metric_errors_from(const std::string& text, Measurement& measurement) {
  undamaged(text, [&](const Json& json) {
    for (const auto& [name, error] : json.items()) {
      measurement.metric_errors[name] = number_from(error.is_array() ? error.at(0) : error);
      if (error.is_array()) measurement.metric_degrees[name] = number_from(error.at(1));
    }
  });
}

std::string quantities_text(const Measurement& measurement) {
  Json json = Json::object();
  for (const auto& [name, quantity] : measurement.quantities) {
    Json& entry = json[name];
    entry = {{"value", number_json(quantity.value)},
             {"standard_error", number_json(quantity.standard_error)},
             {"n", quantity.n},
             {"method", quantity.method},
             {"provenance", to_string(quantity.provenance)}};
    if (!quantity.sensor.empty()) entry["sensor"] = quantity.sensor;
    if (quantity.degrees > 0) entry["degrees"] = quantity.degrees;
  }
  return json_text(json);
}

void quantities_from(const std::string& text, Measurement& measurement) {
  undamaged(text, [&](const Json& json) {
    for (const auto& [name, entry] : json.items()) {
      Quantity& quantity = measurement.quantities[name];
      quantity.value = number_from(entry.at("value"));
      quantity.standard_error = number_from(entry.at("standard_error"));
      quantity.n = entry.at("n");
      quantity.method = entry.at("method");
      const std::string provenance = entry.at("provenance");
      const auto known = provenance_named(provenance);
      if (!known) throw Error("unknown provenance \"" + provenance + "\" in a stored row");
      quantity.provenance = *known;
      if (entry.contains("sensor")) quantity.sensor = entry.at("sensor");
      if (entry.contains("degrees")) quantity.degrees = number_from(entry.at("degrees"));
    }
  });
}

}  // namespace ergotune
