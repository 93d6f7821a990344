// Values, places and expressions in a problem's document.
#include <cmath>
#include <limits>

#include "problem/files/document.hpp"

namespace ergotune::document {

Json number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}
double number(const Json& json) {
  if (!json.is_string()) return json.get<double>();
  const auto word = json.get<std::string>();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  return word == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

Json write(const Value& value) {
  if (value.is_bool()) return std::get<bool>(value.data());
  if (value.is_integer()) return value.as_integer();
  if (value.is_string()) return value.as_string();
  const double real = value.as_real();
  return std::isfinite(real) ? Json(real) : Json{{"real", number(real)}};
}
Value read_value(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_object()) return number(json.at("real"));
  return json.get<std::string>();
}

Json write(const SourcePlace& place) { return Json::array({place.file, place.line, place.column}); }
SourcePlace read_place(const Json& json) { return {json.at(0), json.at(1), json.at(2)}; }

Json write(const Expression& expression) {
  const std::string text = expression.text().empty() ? expression.to_string() : expression.text();
  return Json{{"text", text}, {"place", write(expression.place())}};
}
Expression read_expression(const Json& json) {
  return Expression::parse(json.at("text").get<std::string>(), read_place(json.at("place")));
}

Json write(const Constants& constants) {
  Json json = Json::object();
  for (const auto& [name, value] : constants) json[name] = write(value);
  return json;
}
Constants read_constants(const Json& json) {
  Constants constants;
  for (const auto& [name, value] : json.items()) constants[name] = read_value(value);
  return constants;
}

Json write(const Template& text) { return text.text(); }
Template read_template(const Json& json) { return Template::parse(json.get<std::string>()); }

Json write(const std::filesystem::path& path) { return path.string(); }
std::filesystem::path read_path(const Json& json) { return json.get<std::string>(); }

}  // namespace ergotune::document
