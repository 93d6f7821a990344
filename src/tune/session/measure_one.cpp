#include "tune/session/measure_one.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ergotune/error.hpp"

namespace ergotune {

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
  ledger->drive(single);
  ledger->end_run("finished");
  result.measurement = ledger->find(index)->measurement;
  return result;
}

std::optional<ConfigurationIndex> index_of_values(const PreparedSession& prepared,
                                                  const std::map<std::string, Value>& values) {
  const auto& parameters = prepared.space->parameters();
  std::vector<std::string> names;
  Configuration configuration;
  for (const Parameter& parameter : parameters) {
    names.push_back(parameter.name);
    const auto given = values.find(parameter.name);
    configuration.push_back(given != values.end() ? given->second : *parameter.default_or_first());
  }
  for (const auto& [name, value] : values)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw UserError(fmt::format("there is no parameter \"{}\"{}", name, suggestion(name, names)));
  return prepared.space->index_of(configuration);
}

}  // namespace ergotune
