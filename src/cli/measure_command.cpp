// ergotune measure: one configuration, the same way `tune` measures it.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/live_options.hpp"
#include "cli/progress.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/measure/metrics.hpp"
#include "kernel/configure.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

struct MeasureArguments : LiveArguments {
  std::string configuration;
  std::optional<std::string> store;
  bool no_resume = false, json = false;
};

Value value_from(const Json& json, const std::string& name) {
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_integer()) return Value(json.get<std::int64_t>());
  if (json.is_number()) return Value(json.get<double>());
  if (json.is_string()) return Value(json.get<std::string>());
  throw UserError("--config: the value of \"" + name + "\" is neither a number nor a string");
}

/// The configuration of a JSON object; parameters that it leaves out take their defaults.
Configuration configuration_from(const std::string& text, const std::vector<Parameter>& parameters) {
  Json document = Json::object();
  if (!text.empty()) {
    document = Json::parse(text, nullptr, false);
    if (!document.is_object())
      throw UserError("--config takes a JSON object such as '{\"block_size_x\": 64}'");
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
      configuration.push_back(parameter.default_value ? *parameter.default_value : parameter.values.front());
    }
  }
  return configuration;
}

/// Which value or restriction keeps a configuration out of the space.
std::string why_not(const PreparedSession& prepared, const Configuration& configuration) {
  const auto& parameters = prepared.space->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& values = parameters[i].values;
    if (values.empty() || std::find(values.begin(), values.end(), configuration[i]) != values.end()) continue;
    std::string known;
    for (std::size_t v = 0; v < std::min<std::size_t>(values.size(), 20); ++v)
      known += fmt::format("{}{}", v ? ", " : "", values[v].to_string());
    return fmt::format("{} has no value {}, it has {}{}", parameters[i].name, configuration[i].to_string(), known,
                       values.size() > 20 ? " ..." : "");
  }
  const ConfigurationScope names(parameters, configuration, prepared.constants);
  for (const Restriction& restriction : prepared.problem.restrictions) {
    const Scope scope = names.scope();
    const bool met = restriction.function ? restriction.function(scope) : restriction.expression.evaluate(scope).truthy();
    if (!met) return fmt::format("the restriction \"{}\" does not hold", restriction.label());
  }
  return "it is none of those that are searched";
}

void print_measurement(const PreparedSession& prepared, ConfigurationIndex index, const Measurement& measurement) {
  fmt::print("{} on {}: {}\n  {}\n", prepared.problem.name, prepared.device.name, to_string(measurement.status),
             describe(prepared.space->parameters(), prepared.space->configuration(index)));
  if (!measurement.message.empty()) fmt::print("  {}\n", measurement.message);
  const auto print_value = [&](const std::string& name) {
    fmt::print("  {:<22} {}\n", name, with_interval(measurement, name, prepared.problem.metrics));
  };
  for (const auto& [name, quantity] : measurement.quantities) print_value(name);
  for (const auto& [name, value] : measurement.metrics) print_value(name);
  for (const std::string& warning : measurement.warnings) fmt::print("  note: {}\n", warning);
}

void measure(const MeasureArguments& arguments) {
  Problem problem = load_with(arguments);
  SetupOptions setup = setup_with(arguments, problem);
  setup.store = arguments.store.value_or("");
  setup.resume = !arguments.no_resume;
  setup.live.jobs = 1;
  PreparedSession prepared = prepare_session(std::move(problem), setup);
  for (const std::string& note : prepared.notes) fmt::print(stderr, "note: {}\n", note);
  const auto& parameters = prepared.space->parameters();
  const Configuration configuration = configuration_from(arguments.configuration, parameters);
  const auto index = prepared.space->index_of(configuration);
  if (!index) {
    throw UserError(
        fmt::format("the configuration {} is not in the search space of {}: {}; see: ergotune space {}",
                    describe(parameters, configuration), prepared.problem.name, why_not(prepared, configuration),
                    arguments.file));
  }
  // Where results are compared with the first correct configuration's, the default's is the one to trust.
  const auto fallback = default_of(*prepared.space);
  if (prepared.live && fallback && *fallback != *index)
    prepared.live->establish_reference({prepared.space->configuration(*fallback)});

  const auto ledger = prepared.open_ledger();
  RunInfo run;
  run.objective = prepared.objective->spec();
  run.phase = "measuring one configuration";
  ledger->begin_run(run);
  bool known = false;
  ListSource single({*index}, [&](const Wanted&, const Measurement&, bool fresh) {
    known = !fresh;
    return true;
  });
  single.set_objective_quantity(prepared.objective->name() == "energy" ? "energy" : "time");
  ledger->drive(single);
  ledger->end_run("finished");
  const Measurement& measurement = ledger->find(*index)->measurement;
  if (known) fmt::print(stderr, "note: this was measured before and is told from {}; --no-resume measures anew\n", prepared.store->file().string());
  if (arguments.json) {
    Json document{{"problem", prepared.problem.name},
                  {"device", prepared.device.id},
                  {"device_name", prepared.device.name},
                  {"configuration", to_json(parameters, configuration)}};
    document.update(to_json(measurement));
    document["compile_seconds"] = measurement.compile_seconds;
    document["verify_seconds"] = measurement.verify_seconds;
    document["measure_seconds"] = measurement.measure_seconds;
    print_json(document);
  } else {
    print_measurement(prepared, *index, measurement);
  }
  if (!usable(measurement.status)) throw Exit{kNoAnswer};
}

}  // namespace

void add_measure_command(Verb app) {
  auto arguments = std::make_shared<MeasureArguments>();
  Verb verb = app.add_verb("measure", "Measure one configuration");
  add_live_options(verb, *arguments);
  verb.add_option("-c,--config", arguments->configuration,
                  "The configuration as a JSON object; parameters left out take their defaults");
  verb.add_option("--store", arguments->store, "Keep the result here, and tell what is known already (default: nowhere)");
  verb.add_flag("--no-resume", arguments->no_resume, "Measure anew what is stored");
  add_json_option(verb, arguments->json);
  verb.footer("Example: ergotune measure gemm.toml --config '{\"MWG\": 64, \"NWG\": 64}' --json");
  verb.callback([arguments] { measure(*arguments); });
}

}  // namespace ergotune::cli
