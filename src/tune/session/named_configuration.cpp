#include "tune/session/named_configuration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_depth.hpp"
#include "ergotune/error.hpp"
#include "kernel/configure.hpp"
#include "space/expression/expression_tokens.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

Value value_from(const Json& json, const std::string& name) {
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_integer()) return Value(json.get<std::int64_t>());
  if (json.is_number()) return Value(json.get<double>());
  if (json.is_string()) return Value(json.get<std::string>());
  throw UserError("--config: the value of \"" + name + "\" is neither a number nor a string");
}

}  // namespace

Configuration configuration_of_json(const std::string& text, const std::vector<Parameter>& parameters) {
  Json document = Json::object();
  if (!text.empty()) {
    document = parse_json<Json>(text, false);
    if (!document.is_object()) throw UserError("--config takes a JSON object such as '{\"block_size_x\": 64}'");
  }
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters) names.push_back(parameter.name);
  for (const auto& [name, value] : document.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw UserError(fmt::format("--config: there is no parameter \"{}\"{}", name, suggestion(name, names)));
    }
  }
  Configuration configuration;
  for (const Parameter& parameter : parameters) {
    if (document.contains(parameter.name)) {
      configuration.push_back(value_from(document[parameter.name], parameter.name));
    } else {
      configuration.push_back(*parameter.default_or_first());
    }
  }
  return configuration;
}

namespace {

/// Which value or restriction keeps a configuration out of the space.
std::string why_not(const PreparedSession& prepared, const Configuration& configuration) {
  const auto& parameters = prepared.space->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& values = parameters[i].values;
    if (values.empty() || std::find(values.begin(), values.end(), configuration[i]) != values.end()) continue;
    std::string known;
    for (std::size_t v = 0; v < std::min<std::size_t>(values.size(), 20); ++v)
      known += fmt::format("{}{}", v ? ", " : "", values[v].to_literal());
    return fmt::format("{} has no value {}, it has {}{}", parameters[i].name, configuration[i].to_literal(), known,
                       values.size() > 20 ? " ..." : "");
  }
  const ConfigurationScope names(parameters, configuration, prepared.constants);
  for (const Restriction& restriction : prepared.problem.restrictions) {
    const Scope scope = names.scope();
    const bool met =
        restriction.function ? restriction.function(scope) : restriction.expression.evaluate(scope).truthy();
    if (!met) return fmt::format("the restriction \"{}\" does not hold", excerpt(restriction.label()));
  }
  return "it is none of those that are searched";
}

}  // namespace

ConfigurationIndex named_configuration(const PreparedSession& prepared, const std::string& json,
                                       const std::string& file) {
  const auto& parameters = prepared.space->parameters();
  const Configuration configuration = configuration_of_json(json, parameters);
  if (const auto index = prepared.space->index_of(configuration)) return *index;
  throw UserError(fmt::format("the configuration {} is not in the search space of {}: {}; see: ergotune space {}",
                              describe(parameters, configuration), prepared.problem.name,
                              why_not(prepared, configuration), file));
}

}  // namespace ergotune
