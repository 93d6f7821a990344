// ergotune temperature: one configuration, measured hundreds of times, over the temperature of the chip.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "analysis/temperature_study.hpp"
#include "base/clock.hpp"
#include "base/files.hpp"
#include "cli/command.hpp"
#include "cli/interruption.hpp"
#include "cli/live_options.hpp"
#include "cli/one_configuration.hpp"
#include "cli/output/progress.hpp"
#include "ergotune/error.hpp"
#include "measure/energy/energy.hpp"
#include "power/sensors/temperature_coefficient.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

struct TemperatureArguments : LiveArguments {
  std::string configuration, csv, figure;
  std::size_t runs = 300, every = 20;
  double seconds = 0, rest = 0;
  std::optional<double> at;
  bool json = false, dry = false;
};

/// The same configuration again and again, with rests in which the board cools, until there are enough, or time is up.
class Repeated : public Source {
 public:
  Repeated(ConfigurationIndex index, const TemperatureArguments& arguments, ProgressPrinter& progress,
           const std::atomic<bool>* interrupted)
      : index_(index), arguments_(arguments), progress_(progress), interrupted_(interrupted), began_(host_seconds()) {}

  std::vector<ConfigurationRequest> next(std::size_t) override {
    if (under_way_ || runs_.size() >= arguments_.runs) return {};
    if (arguments_.rest > 0 && !runs_.empty() && runs_.size() % arguments_.every == 0) rest();
    if (!stop().empty()) return {};
    under_way_ = true;
    ConfigurationRequest wanted;
    wanted.index = index_;
    wanted.kind = RowKind::confirmation;  // measured whether it is known or not
    wanted.objective_quantity = "energy";
    return {wanted};
  }
  void take(const ConfigurationRequest&, const Measurement& measurement, bool) override {
    under_way_ = false;
    runs_.push_back(measurement);
    SessionProgress now;
    now.evaluated = runs_.size();
    now.total = arguments_.runs;
    now.seconds = host_seconds() - began_;
    now.seconds_left =
        now.seconds / static_cast<double>(runs_.size()) * static_cast<double>(arguments_.runs - runs_.size());
    if (arguments_.seconds > 0)
      now.seconds_left = std::min(*now.seconds_left, std::max(0.0, arguments_.seconds - now.seconds));
    progress_(now);
  }
  std::string stop() override {
    // What does not work once will not work three hundred times.
    if (runs_.size() >= 3 &&
        std::none_of(runs_.begin(), runs_.end(), [](const Measurement& m) { return usable(m.status); }))
      return "it does not work";
    return arguments_.seconds > 0 && host_seconds() - began_ >= arguments_.seconds ? "time is up" : std::string();
  }
  const std::vector<Measurement>& runs() const { return runs_; }
  double seconds() const { return host_seconds() - began_; }

 private:
  void rest() const {
    const double end = host_seconds() + arguments_.rest;
    while (host_seconds() < end && !interrupted_->load()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }

  ConfigurationIndex index_;
  const TemperatureArguments& arguments_;
  ProgressPrinter& progress_;
  const std::atomic<bool>* interrupted_;
  double began_;
  bool under_way_ = false;
  std::vector<Measurement> runs_;
};

Json slope_document(const std::string& name, const TemperatureSlope& line) {
  return {{"unit", unit_of(name)},
          {"mean", line.mean},
          {"slope_per_degree", line.slope},
          {"low", line.low},
          {"high", line.high},
          {"percent_per_degree", 100 * line.slope / line.mean},
          {"significant", line.significant()},
          {"deviation", line.deviation}};
}

Json document_of(const PreparedSession& prepared, const Configuration& configuration, const TemperatureStudy& study,
                 const TemperatureArguments& arguments, double seconds, const std::filesystem::path& kept) {
  Json document{{"problem", prepared.problem.name},
                {"device", prepared.device.id},
                {"device_name", prepared.device.name},
                {"provenance", to_string(prepared.evaluator->provenance())},
                {"configuration", to_json(prepared.space->parameters(), configuration)},
                {"runs", study.runs.size()},
                {"failed", study.failed},
                {"seconds", seconds},
                {"coolest_c", study.coolest},
                {"hottest_c", study.hottest},
                {"over_temperature", Json::object()},
                {"coefficient", nullptr},
                {"corrected", nullptr}};
  for (const auto& [name, line] : study.slopes) document["over_temperature"][name] = slope_document(name, line);
  if (study.why_not.empty()) {
    const TemperatureSlope& power = study.slopes.at("power");
    document["coefficient"] = {{"watts_per_degree", power.slope},
                               {"low", power.low},
                               {"high", power.high},
                               {"kept_in", kept.empty() ? Json(nullptr) : Json(kept.string())}};
  } else {
    document["why_not"] = study.why_not;
  }
  if (arguments.at && study.slopes.contains("energy")) {
    const EnergyScatter scatter = scatter_of(study, *arguments.at);
    const TemperatureSlope& energy = study.slopes.at("energy");
    document["corrected"] = {{"celsius", *arguments.at},
                             {"provenance", to_string(Provenance::modelled)},
                             {"energy", energy.mean + energy.slope * (*arguments.at - energy.mean_temperature)},
                             {"scatter_measured", scatter.measured},
                             {"scatter_corrected", scatter.corrected}};
  }
  return document;
}

void print_for_people(const PreparedSession& prepared, const Configuration& configuration,
                      const TemperatureStudy& study, const TemperatureArguments& arguments, double seconds,
                      const std::filesystem::path& kept) {
  fmt::print("{} on {}: {}\n  {} runs in {}{}, {:.1f} to {:.1f} °C\n", prepared.problem.name, prepared.device.name,
             describe(prepared.space->parameters(), configuration), study.runs.size(), human_duration(seconds),
             study.failed ? fmt::format(" ({} failed)", study.failed) : "", study.coolest, study.hottest);
  for (const auto& [name, line] : study.slopes) {
    fmt::print("  {:<12} {:>12}, {:+.3f} % per °C ({:+.3f} to {:+.3f}){}\n", name, human(line.mean, unit_of(name)),
               100 * line.slope / line.mean, 100 * line.low / line.mean, 100 * line.high / line.mean,
               line.significant() ? "" : ", which may be nothing");
  }
  if (arguments.at && study.slopes.contains("energy")) {
    const EnergyScatter scatter = scatter_of(study, *arguments.at);
    fmt::print("  corrected to {:g} °C (modelled) the energies scatter by {:.2f} % instead of {:.2f} %\n",
               *arguments.at, 100 * scatter.corrected, 100 * scatter.measured);
  }
  if (!study.why_not.empty())
    fmt::print("  no coefficient of the board: {}\n", study.why_not);
  else
    fmt::print("  coefficient  {:+.3g} W per °C ({:+.3g} to {:+.3g}){}\n", study.slopes.at("power").slope,
               study.slopes.at("power").low, study.slopes.at("power").high,
               kept.empty() ? "" : ", kept in " + kept.string());
}

std::string csv_of(const TemperatureStudy& study, std::optional<double> at) {
  std::string text = "finished_at,temperature_c,energy_j,energy_standard_error_j,power_w,time_s,core_clock_hz";
  text += at ? ",corrected_energy_j\n" : "\n";
  for (const Measurement& run : study.runs) {
    const auto told = [&](const char* name) {
      const auto value = run.value(name);
      return value ? fmt::format("{:.9g}", *value) : std::string();
    };
    text += fmt::format("{:.3f},{},{},{:.4g},{},{},{}", run.finished_at, told("temperature"), told("energy"),
                        run.standard_error("energy"), told("power"), told("time"), told("core_clock"));
    text += at ? fmt::format(",{:.9g}\n", energy_at(study, run, *at)) : "\n";
  }
  return text;
}

/// The change of power with temperature belongs to the board, not to this kernel: it is kept for corrected_energy.
std::filesystem::path keep(const PreparedSession& prepared, const TemperatureStudy& study) {
  const DeviceInfo& device = prepared.device;
  const EnergySources sources =
      energy_sources(prepared.problem.settings.sensors, device.name, device.uuid, device.pci_address, device.is_cpu);
  const TemperatureSlope& power = study.slopes.at("power");
  return keep_temperature_coefficient(sources.sensors.front()->info(),
                                      {power.slope, power.standard_error, study.coolest, study.hottest});
}

PreparedSession prepare(const TemperatureArguments& arguments, Problem problem) {
  problem.objective = ObjectiveSpec{};
  problem.objective.text = "energy";
  SetupOptions setup = setup_with(arguments, problem);
  if (setup.device.starts_with("sim:") || setup.device.starts_with("replay:"))
    throw UserError("temperature measures a device that is here; a simulation or a recording has no temperature");
  setup.live.energy = true;
  setup.live.jobs = 1;
  // Worker processes keep a board warm between configurations, which is what a rest is not for.
  setup.in_process = setup.in_process || arguments.rest > 0;
  setup.interrupted = interruption();
  setup.tell = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  setup.announce = setup.tell;
  PreparedSession prepared = prepare_session(std::move(problem), setup);
  for (const std::string& note : prepared.notes) fmt::print(stderr, "note: {}\n", note);
  return prepared;
}

void study(const TemperatureArguments& arguments) {
  if (arguments.runs < 8) throw UserError("--runs must be at least 8, and a few hundred to see a slope");
  if (arguments.every < 1) throw UserError("--every must be at least 1");
  PreparedSession prepared = prepare(arguments, load_with(arguments));
  const ConfigurationIndex index = named_configuration(prepared, arguments.configuration, arguments.file);
  const Configuration configuration = prepared.space->configuration(index);
  const auto ledger = prepared.open_ledger({}, interruption());
  ProgressPrinter progress(false, "energy", "J");
  Repeated repeated(index, arguments, progress, interruption());
  ledger->drive(repeated);
  progress.finish();
  const TemperatureStudy found = study_temperature(repeated.runs());
  if (found.slopes.empty()) {
    const auto& runs = repeated.runs();
    const auto failed = std::find_if(runs.begin(), runs.end(), [](const Measurement& m) { return !usable(m.status); });
    fmt::print(stderr, "ergotune: no slope from {} runs: {}\n", runs.size(),
               failed != runs.end() ? to_string(failed->status) + ": " + failed->message
               : found.runs.size() < 8
                   ? "eight with energy and temperature are needed at least"
                   : "the temperature did not change at all; --rest lets the board cool in between");
    throw Exit{kNoAnswer};
  }
  std::filesystem::path kept;
  if (found.why_not.empty() && !arguments.dry) kept = keep(prepared, found);
  if (!arguments.csv.empty()) write_named_file(arguments.csv, csv_of(found, arguments.at));
  if (!arguments.figure.empty()) {
    Chart chart = temperature_chart(found, arguments.at);
    chart.title = fmt::format("Energy over temperature: {} on {}", prepared.problem.name, prepared.device.name);
    write_named_file(arguments.figure, chart.to_svg());
  }
  const double seconds = repeated.seconds();
  if (arguments.json)
    print_json(document_of(prepared, configuration, found, arguments, seconds, kept));
  else
    print_for_people(prepared, configuration, found, arguments, seconds, kept);
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
  verb.add_option("--rest", arguments->rest, "Let the board rest and cool for so many s now and then (0: never)");
  verb.add_option("--every", arguments->every, "How many runs there are between rests (20)");
  verb.add_option("--at", arguments->at, "Correct energies to this temperature in °C: modelled");
  verb.add_option("--csv", arguments->csv, "Keep every run: time, temperature, energy, power, clock");
  verb.add_option("--figure", arguments->figure, "Write energy over temperature as an SVG figure");
  verb.add_flag("--dry-run", arguments->dry, "Do not keep the board's coefficient for corrected_energy");
  add_json_option(verb, arguments->json);
  verb.footer(
      "The board's change of power with temperature is kept per board and driver; the objective and quantity\n"
      "corrected_energy uses it.\n"
      "Example: ergotune temperature gemm.toml --config '{\"MWG\": 64}' --runs 500 --rest 20 --at 50 --figure t.svg");
  verb.callback([arguments] { study(*arguments); });
}

}  // namespace ergotune::cli
