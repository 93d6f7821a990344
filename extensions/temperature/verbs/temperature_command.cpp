// ergotune temperature: measures one configuration hundreds of times over the temperature of the chip.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/live_options.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/table.hpp"
#include "cli/run_here.hpp"
#include "temperature/temperature.hpp"

namespace ergotune::cli {
namespace {

struct TemperatureArguments : LiveArguments, TemperatureOptions {
  bool json = false;
};

void print_for_people(const TemperatureRun& run, const TemperatureOptions& options) {
  const auto& [prepared, configuration, study, seconds, kept] = run;
  fmt::print("{} on {}: {}\n  {} runs in {}{}, {:.1f} to {:.1f} °C\n", prepared.problem.name, prepared.device.name,
             describe(prepared.space->parameters(), configuration), study.runs.size(), human_duration(seconds),
             study.failed ? fmt::format(" ({} failed)", study.failed) : "", study.coolest, study.hottest);
  for (const auto& [name, line] : study.slopes) {
    fmt::print("  {:<12} {:>12}, {:+.3f} % per °C ({:+.3f} to {:+.3f}){}\n", name, human(line.mean, unit_of(name)),
               100 * line.slope / line.mean, 100 * line.low / line.mean, 100 * line.high / line.mean,
               line.significant() ? "" : ", which may be nothing");
  }
  if (options.at && study.slopes.contains("energy")) {
    const EnergyScatter scatter = scatter_of(study, *options.at);
    fmt::print("  corrected to {:g} °C (modelled) the energies scatter by {:.2f} % instead of {:.2f} %\n", *options.at,
               100 * scatter.corrected, 100 * scatter.measured);
  }
  if (!study.why_not.empty())
    fmt::print("  no coefficient of the device: {}\n", study.why_not);
  else
    fmt::print("  coefficient  {:+.3g} W per °C ({:+.3g} to {:+.3g}){}\n", study.slopes.at("power").slope,
               study.slopes.at("power").low, study.slopes.at("power").high,
               kept.empty() ? "" : ", kept in " + kept.string());
}

void study(TemperatureArguments& arguments) {
  ProblemFile problem = load_with(arguments);
  SetupOptions setup = setup_with(arguments, problem.run);
  setup.notify = setup.announce = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  ProgressPrinter progress(false, "energy", "J");
  arguments.interrupted = interruption();
  arguments.progress = [&](const SessionProgress& now) { progress(now); };
  const TemperatureRun run = run_temperature(std::move(problem), std::move(setup), arguments);
  progress.finish();
  for (const std::string& note : run.prepared.notes) fmt::print(stderr, "note: {}\n", note);
  if (arguments.json)
    print_json(temperature_document(run, arguments));
  else
    print_for_people(run, arguments);
}

}  // namespace

void add_temperature_command(Verb app) {
  auto arguments = std::make_shared<TemperatureArguments>();
  Verb verb = app.add_verb("temperature", "Energy of one configuration over the temperature of the chip");
  add_live_options(verb, *arguments);
  verb.add_option("-c,--config", arguments->configuration,
                  "The configuration as a JSON object; parameters left out take their defaults");
  verb.add_option("--runs", arguments->runs, "How often it is measured (300)");
  verb.add_option("--seconds", arguments->seconds,
                  "End after so many s, however often it was measured by then (no end)");
  verb.add_option("--rest", arguments->rest, "Let the device rest and cool for so many s now and then (0: never)");
  verb.add_option("--every", arguments->every, "How many runs there are between rests (20)");
  verb.add_option("--at", arguments->at, "Correct energies to this temperature in °C: modelled");
  verb.add_option("--csv", arguments->csv, "Keep every run: time, temperature, energy, power, clock");
  add_figure_option(verb, arguments->figure, "energy over temperature");
  verb.add_flag("--dry-run", arguments->dry, "Do not keep the device's coefficient for corrected_energy");
  add_json_option(verb, arguments->json);
  verb.footer(
      "The device's change of power with temperature is kept per device and driver; the objective and quantity\n"
      "corrected_energy uses it.\n"
      "Example: ergotune temperature gemm.toml --config '{\"MWG\": 64}' --runs 500 --rest 20 --at 50 --figure t.svg\n"
      "In Python: ergotune.temperature(\"gemm.toml\", {\"MWG\": 64}, runs=300, rest=20)");
  verb.callback([arguments] { study(*arguments); });
}

}  // namespace ergotune::cli
