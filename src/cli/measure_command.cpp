// ergotune measure: one configuration, the same way `tune` measures it.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/live_options.hpp"
#include "cli/one_configuration.hpp"
#include "cli/progress.hpp"
#include "ergotune/base/error.hpp"
#include "cli/table.hpp"
#include "ergotune/measure/metrics.hpp"
#include "ergotune/problem/steps.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

struct MeasureArguments : LiveArguments {
  std::string configuration;
  std::optional<std::string> store;
  bool no_resume = false, json = false, apart = false;
};

void print_measurement(const PreparedSession& prepared, ConfigurationIndex index, const Measurement& measurement) {
  fmt::print("{} on {}: {}\n  {}\n", prepared.problem.name, prepared.device.name, to_string(measurement.status),
             describe(prepared.space->parameters(), prepared.space->configuration(index)));
  if (!measurement.message.empty()) fmt::print("  {}\n", measurement.message);
  const auto print_value = [&](const std::string& name) {
    const auto found = measurement.quantities.find(name);
    const bool modelled = found != measurement.quantities.end() && found->second.provenance == Provenance::modelled;
    fmt::print("  {:<22} {}{}\n", name, with_interval(measurement, name, prepared.problem.metrics), modelled ? ", modelled" : "");
  };
  for (const auto& [name, quantity] : measurement.quantities) print_value(name);
  for (const auto& [name, value] : measurement.metrics) print_value(name);
  for (const std::string& warning : measurement.warnings) fmt::print("  note: {}\n", warning);
}

/// What came of one configuration of a prepared problem.
struct Measured {
  PreparedSession prepared;
  Configuration configuration;
  Measurement measurement;
};

Measured measure_one(Problem problem, const MeasureArguments& arguments) {
  SetupOptions setup = setup_with(arguments, problem);
  setup.store = arguments.store.value_or("");
  setup.resume = !arguments.no_resume;
  setup.live.jobs = 1;
  Measured result{prepare_session(std::move(problem), setup), {}, {}};
  PreparedSession& prepared = result.prepared;
  for (const std::string& note : prepared.notes) fmt::print(stderr, "note: {}\n", note);
  const ConfigurationIndex index = named_configuration(prepared, arguments.configuration, arguments.file);
  result.configuration = prepared.space->configuration(index);
  // Where results are compared with the first correct configuration's, the default's is the one to trust.
  const auto fallback = default_of(*prepared.space);
  if (prepared.live && fallback && *fallback != index)
    prepared.live->establish_reference({prepared.space->configuration(*fallback)});

  const auto ledger = prepared.open_ledger();
  RunInfo run;
  run.objective = prepared.objective->spec();
  run.phase = "measuring one configuration";
  ledger->begin_run(run);
  bool known = false;
  ListSource single({index}, [&](const Wanted&, const Measurement&, bool fresh) {
    known = !fresh;
    return true;
  });
  single.set_objective_quantity(prepared.objective->name() == "energy" ? "energy" : "time");
  ledger->drive(single);
  ledger->end_run("finished");
  result.measurement = ledger->find(index)->measurement;
  if (known)
    fmt::print(stderr, "note: this was measured before and is told from {}; --no-resume measures anew\n",
               prepared.store->file().string());
  return result;
}

Json document_of(const Measured& measured) {
  const PreparedSession& prepared = measured.prepared;
  Json document{{"problem", prepared.problem.name},
                {"device", prepared.device.id},
                {"device_name", prepared.device.name},
                {"configuration", to_json(prepared.space->parameters(), measured.configuration)}};
  document.update(to_json(measured.measurement));
  document["compile_seconds"] = measured.measurement.compile_seconds;
  document["verify_seconds"] = measured.measurement.verify_seconds;
  document["measure_seconds"] = measured.measurement.measure_seconds;
  return document;
}

/// The round as it is given, the same launches in sequence, and each kernel alone.
std::vector<std::pair<std::string, Problem>> variants_of(const Problem& problem) {
  if (!problem.has_named_kernels())
    throw UserError("--apart takes the kernels of a round apart; this problem has one kernel");
  std::vector<std::pair<std::string, Problem>> variants{{"as given", problem}, {"in sequence", problem}};
  variants.back().second.steps = steps_in_sequence(problem);
  for (std::size_t k = 0; k < problem.kernels.size(); ++k) {
    variants.emplace_back(problem.kernels[k].name + " alone", problem);
    variants.back().second.steps = steps_alone(problem, k);
    // What it works on would have come from the others.
    variants.back().second.verification = {};
    variants.back().second.verification.kind = Verification::Kind::none;
  }
  return variants;
}

void measure_apart(const MeasureArguments& arguments) {
  Json document = Json::array();
  Table table({"round", "time", "energy", "overlap", ""});
  std::map<std::string, Measurement> measurements;
  for (auto& [name, problem] : variants_of(load_with(arguments))) {
    const std::vector<Metric> metrics = problem.metrics;
    const Measured measured = measure_one(std::move(problem), arguments);
    const Measurement& m = measured.measurement;
    measurements[name] = m;
    Json entry{{"round", name}};
    entry.update(document_of(measured));
    document.push_back(std::move(entry));
    const auto told = [&](const char* quantity) {
      return m.quantities.contains(quantity) ? with_interval(m, quantity, metrics) : std::string("-");
    };
    table.add({name, told("time"), told("energy"), told("overlap"),
               m.ok() ? "" : fmt::format("{}: {}", to_string(m.status), m.message)});
  }
  if (arguments.json) return print_json(document);
  table.align_left(0);
  table.align_left(4);
  fmt::print("{}", table.to_string(0, terminal_width()));
  for (const char* quantity : {"time", "energy"}) {
    const auto side = measurements["as given"].value(quantity), after = measurements["in sequence"].value(quantity);
    if (side && after && *side > 0)
      fmt::print("\nin sequence over as given, {}: {:.3f}", quantity, *after / *side);
  }
  fmt::print("\n");
}

void measure(const MeasureArguments& arguments) {
  if (arguments.apart) return measure_apart(arguments);
  const Measured measured = measure_one(load_with(arguments), arguments);
  if (arguments.json)
    print_json(document_of(measured));
  else
    print_measurement(measured.prepared, *measured.prepared.space->index_of(measured.configuration), measured.measurement);
  if (!usable(measured.measurement.status)) throw Exit{kNoAnswer};
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
  verb.add_flag("--apart", arguments->apart,
                "Of several kernels: the round as given, the same launches in sequence, and each kernel alone");
  add_json_option(verb, arguments->json);
  verb.footer(
      "Examples:\n"
      "  ergotune measure gemm.toml --config '{\"MWG\": 64, \"NWG\": 64}' --json\n"
      "  ergotune measure gemm.toml --observe host_time:passes=3\n"
      "  ergotune measure gemm.toml --device sim:a100 --objective energy --store results.db");
  verb.callback([arguments] { measure(*arguments); });
}

}  // namespace ergotune::cli
