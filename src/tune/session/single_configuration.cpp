#include "tune/session/single_configuration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "kernel/configure.hpp"
#include "problem/tables/setting_table.hpp"
#include "space/expression/expression_tokens.hpp"
#include "store/formats/json_values.hpp"

namespace ergotune {

Configuration configuration_of(const std::map<std::string, Value>& values, const std::vector<Parameter>& parameters) {
  std::vector<std::string> names;
  Configuration configuration;
  for (const Parameter& parameter : parameters) {
    names.push_back(parameter.name);
    const auto given = values.find(parameter.name);
    configuration.push_back(given != values.end() ? given->second : *parameter.default_or_first());
  }
  for (const auto& [name, value] : values)
    if (std::ranges::find(names, name) == names.end())
      throw UserError(fmt::format("there is no parameter \"{}\"{}", name, suggestion(name, names)));
  return configuration;
}

Configuration configuration_of_text(const std::string& text, const std::vector<Parameter>& parameters) {
  std::map<std::string, Value> values;
  if (!trimmed(text).starts_with('{') && !text.empty()) {
    for (const std::string& part : split(text)) {
      const std::size_t equals = part.find('=');
      if (equals == std::string::npos)
        throw UserError(
            fmt::format("--config: \"{}\" is not NAME=VALUE; write \"BLOCK=64, TILE=2\", as results are printed, or a "
                        "JSON object",
                        trimmed(part)));
      values[std::string(trimmed(part.substr(0, equals)))] = parse_value(std::string(trimmed(part.substr(equals + 1))));
    }
    return configuration_of(values, parameters);
  }
  const Json document = text.empty() ? Json::object() : parse_json<Json>(text, false);
  for (const auto& [name, value] : document.items()) {
    if (!value.is_boolean() && !value.is_number() && !value.is_string())
      throw UserError("--config: the value of \"" + name + "\" is neither a number nor a string");
    values[name] = value_from(value);
  }
  return configuration_of(values, parameters);
}

namespace {

/// Which value or restriction keeps a configuration out of the space.
std::string why_not(const PreparedSession& prepared, const Configuration& configuration) {
  const auto& parameters = prepared.space->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& values = parameters[i].values;
    if (values.empty() || std::ranges::find(values, configuration[i]) != values.end()) continue;
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

ConfigurationIndex index_in_space(const PreparedSession& prepared, const Configuration& configuration) {
  if (const auto index = prepared.space->index_of(configuration)) return *index;
  throw UserError(fmt::format("the configuration {} is not in the search space of {}: {}",
                              describe(prepared.space->parameters(), configuration), prepared.problem.name,
                              why_not(prepared, configuration)));
}

ConfigurationIndex named_configuration(const PreparedSession& prepared, const std::string& text) {
  return index_in_space(prepared, configuration_of_text(text, prepared.space->parameters()));
}

SingleMeasurement measure_one(PreparedSession& prepared, ConfigurationIndex index) {
  const auto fallback = prepared.space->default_configuration();
  if (prepared.live && fallback && *fallback != index)
    prepared.live->establish_reference({prepared.space->configuration(*fallback)});
  const auto ledger = prepared.open_ledger();
  RunInfo run;
  run.objective = prepared.objective->spec();
  run.phase = "measuring one configuration";
  ledger->begin_run(run);
  SingleMeasurement result;
  ListSource single({index}, [&](const ConfigurationRequest&, const Measurement&, bool fresh) {
    result.known = !fresh;
    return true;
  });
  single.set_objective_quantity(prepared.objective->name() == "energy" ? "energy" : "time");
  single.set_settle_seconds(kSettleSeconds);
  ledger->drive(single);
  ledger->end_run("finished");
  result.measurement = ledger->find(index)->measurement;
  return result;
}

}  // namespace ergotune
