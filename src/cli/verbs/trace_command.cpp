// ergotune trace: power, clocks and temperature over time, around and during the launches of one configuration.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "cli/command.hpp"
#include "cli/interruption.hpp"
#include "cli/live_options.hpp"
#include "cli/output/figure.hpp"
#include "cli/output/progress.hpp"
#include "ergotune/error.hpp"
#include "measure/energy/power_trace.hpp"
#include "tune/session/named_configuration.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

struct TraceArguments : LiveArguments {
  std::string configuration, csv, figure;
  double before = 1, seconds = 3, after = 2;
  bool json = false;
};

/// A file that goes with the verb, where the user names none.
struct ScratchFile {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("ergotune-trace-{}.csv", ::getpid());
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

Json series_document(const TraceSeries& series, double load_seconds) {
  Json one{{"series", series.name}, {"values", series.time.size()}};
  if (const auto settling = settling_of(series, load_seconds)) {
    one["before"] = number_or_null(settling->before);
    one["final"] = number_or_null(settling->final);
    one["most"] = number_or_null(settling->most);
    one["band"] = number_or_null(settling->band);
    one["settling_seconds"] = settling->seconds ? Json(*settling->seconds) : Json(nullptr);
    one["drift_per_second"] = number_or_null(settling->drift);
  }
  return one;
}

Json document_of(const PreparedSession& prepared, const Configuration& configuration, const PowerTrace& trace) {
  Json document{{"problem", prepared.problem.name},
                {"device", prepared.device.id},
                {"device_name", prepared.device.name},
                {"provenance", "measured"},
                {"configuration", to_json(prepared.space->parameters(), configuration)},
                {"load_seconds", trace.load_seconds},
                {"launches", trace.launches}};
  for (const char* key : {"power", "board", "reasons"}) document[key] = Json::array();
  for (const TraceSeries& series : trace.power)
    document["power"].push_back(series_document(series, trace.load_seconds));
  for (const TraceSeries& series : trace.board)
    document["board"].push_back(series_document(series, trace.load_seconds));
  for (const auto& reason : trace.reasons)
    document["reasons"].push_back({{"reason", reason.name}, {"from", reason.from}, {"to", reason.to}});
  return document;
}

void print_series(const TraceSeries& series, double load_seconds, const char* unit) {
  const auto settling = settling_of(series, load_seconds);
  if (!settling) {
    fmt::print("  {:<24} {} values, too few under load for a mean\n", series.name, series.time.size());
    return;
  }
  const std::string settled =
      settling->seconds ? fmt::format("settles in {:.2f} s to within {:.3g}", *settling->seconds, settling->band)
                        : "does not settle";
  const std::string drift =
      settling->drift != 0 ? fmt::format(", still changing by {:+.3g} {} a second", settling->drift, unit) : "";
  fmt::print("  {:<24} {:.4g} -> {:.4g} {}, {}{}\n", series.name, settling->before, settling->final, unit, settled,
             drift);
}

const char* unit_of_device(const std::string& name) {
  return name == "temperature_c" ? "°C" : name == "core_voltage_v" ? "V" : "MHz";
}

void print_for_people(const PreparedSession& prepared, const Configuration& configuration, const PowerTrace& trace) {
  fmt::print("{} on {}: {}\n  {} launches in {:.2f} s\n", prepared.problem.name, prepared.device.name,
             describe(prepared.space->parameters(), configuration), trace.launches, trace.load_seconds);
  for (const TraceSeries& series : trace.power) print_series(series, trace.load_seconds, "W");
  for (const TraceSeries& series : trace.board) print_series(series, trace.load_seconds, unit_of_device(series.name));
  for (const auto& reason : trace.reasons) {
    std::string words = reason.name;
    std::replace(words.begin(), words.end(), '_', ' ');
    fmt::print("  {:<24} {:.2f} to {:.2f} s\n", words, reason.from, reason.to);
  }
  fmt::print("Times count from the first launch; what a sensor shows includes its own window and lag.\n");
}

Chart chart_of(const PreparedSession& prepared, const PowerTrace& trace) {
  Chart chart;
  chart.title = fmt::format("Power over time: {} on {}", prepared.problem.name, prepared.device.name);
  chart.x_label = "time from the first launch (s)";
  chart.y_label = "power (W)";
  chart.right_label = "core clock (MHz)";
  chart.note = fmt::format("measured; {} launches in {:.2f} s; each line includes its sensor's own window",
                           trace.launches, trace.load_seconds);
  for (const TraceSeries& series : trace.power)
    chart.series.push_back({series.name, series.time, series.value, true, false, {}});
  if (const TraceSeries* clock = trace.find("core_clock_mhz"))
    chart.series.push_back({"core clock", clock->time, clock->value, true, true, {}});
  chart.bands.push_back({0, trace.load_seconds, "launches"});
  return chart;
}

void record(const TraceArguments& arguments) {
  ProblemFile problem = load_with(arguments);
  ScratchFile scratch;
  const std::filesystem::path file = arguments.csv.empty() ? scratch.path : std::filesystem::absolute(arguments.csv);
  ObserverSpec spec{"trace", {}, {}};
  spec.options["file"] = {Value(file.string())};
  spec.options["before"] = {Value(arguments.before)};
  spec.options["seconds"] = {Value(arguments.seconds)};
  spec.options["after"] = {Value(arguments.after)};
  for (const std::string& sensor : problem.run.sensors) spec.options["sensors"].emplace_back(sensor);
  // The energy meter would read the same sensors beside it.
  std::erase_if(problem.observers,
                [](const ObserverSpec& other) { return other.name == "trace" || other.name == "energy"; });
  problem.observers.push_back(std::move(spec));
  problem.objective = ObjectiveSpec{};
  problem.objective.text = "time";
  SetupOptions setup = setup_with(arguments, problem.run);
  if (setup.run.device.starts_with("sim:") || setup.run.device.starts_with("replay:"))
    throw UserError("trace records a device that is here; a simulation or a recording has no power over time");
  setup.run.sensors.clear();
  setup.energy = false;
  setup.run.jobs = 1;
  const double all = arguments.before + arguments.seconds + arguments.after;
  setup.run.energy_seconds = std::max(setup.run.energy_seconds, arguments.seconds);  // so long a stream may be
  setup.run.time_limit = std::max(setup.run.time_limit, 2 * all + 30);
  setup.interrupted = interruption();
  setup.tell = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  PreparedSession prepared = prepare_session(std::move(problem), setup);
  for (const std::string& note : prepared.notes) fmt::print(stderr, "note: {}\n", note);
  const ConfigurationIndex index = named_configuration(prepared, arguments.configuration, arguments.file);
  const Configuration configuration = prepared.space->configuration(index);
  fmt::print(stderr, "recording for about {}\n", human_duration(all + 1));
  const auto ledger = prepared.open_ledger({}, setup.interrupted);
  ListSource single({index});
  ledger->drive(single);
  const ConfigurationResult* entry = ledger->find(index);
  if (entry == nullptr) throw Error("interrupted");
  const auto text = read_file(file);
  if (!text || !usable(entry->measurement.status)) {
    fmt::print(stderr, "ergotune: no trace: {}: {}\n", to_string(entry->measurement.status),
               entry->measurement.message);
    throw Exit{kNoAnswer};
  }
  for (const std::string& warning : entry->measurement.warnings) fmt::print(stderr, "note: {}\n", warning);
  const PowerTrace trace = trace_from_csv(*text, {file.string(), 0, 0});
  write_figure(arguments.figure, {chart_of(prepared, trace)});
  if (arguments.json) {
    print_json(document_of(prepared, configuration, trace));
  } else {
    print_for_people(prepared, configuration, trace);
  }
}

}  // namespace

void add_trace_command(Verb app) {
  auto arguments = std::make_shared<TraceArguments>();
  Verb verb = app.add_verb("trace", "Power, clocks and temperature over time, around and during the launches");
  add_live_options(verb, *arguments);
  verb.add_option("-c,--config", arguments->configuration,
                  "The configuration as a JSON object; parameters left out take their defaults");
  verb.add_option("--seconds", arguments->seconds, "s of launches (3)");
  verb.add_option("--before", arguments->before, "s recorded before them (1)");
  verb.add_option("--after", arguments->after, "s recorded after them (2)");
  verb.add_option("--csv", arguments->csv, "Keep every value: time_s,series,value");
  add_figure_option(verb, arguments->figure, "power and core clock over time");
  add_json_option(verb, arguments->json);
  verb.footer("Example: ergotune trace gemm.toml --config '{\"MWG\": 64}' --figure trace.svg --csv trace.csv");
  verb.callback([arguments] { record(*arguments); });
}

}  // namespace ergotune::cli
