// ergotune trace: records power, clocks and temperature over time, before, during and after launches of one
// configuration.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/live_options.hpp"
#include "cli/output/table.hpp"
#include "cli/run_here.hpp"
#include "report/power_study.hpp"

namespace ergotune::cli {
namespace {

struct TraceArguments : LiveArguments {
  std::string configuration, csv, figure;
  double before = 1, seconds = 3, after = 2;
  bool json = false;
};

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
  for (const TraceSeries& series : trace.gpu) print_series(series, trace.load_seconds, unit_of_device(series.name));
  for (const auto& reason : trace.reasons) {
    std::string text = reason.name;
    std::ranges::replace(text, '_', ' ');
    fmt::print("  {:<24} {:.2f} to {:.2f} s\n", text, reason.from, reason.to);
  }
  fmt::print("Times count from the first launch; what a sensor shows includes its own window and lag.\n");
}

void record(const TraceArguments& arguments) {
  ProblemFile problem = load_with(arguments);
  SetupOptions setup = setup_with(arguments, problem.run);
  setup.interrupted = interruption();
  setup.notify = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  TraceRequest request;
  request.configuration = arguments.configuration;
  request.csv = arguments.csv;
  request.before = arguments.before;
  request.seconds = arguments.seconds;
  request.after = arguments.after;
  const RecordedTrace recorded = record_trace(std::move(problem), std::move(setup), request);
  if (!recorded.trace) {
    fmt::print(stderr, "ergotune: no trace: {}: {}\n", to_string(recorded.measurement.status),
               recorded.measurement.message);
    throw Exit{kNoAnswer};
  }
  for (const std::string& warning : recorded.measurement.warnings) fmt::print(stderr, "note: {}\n", warning);
  write_figure(arguments.figure, {trace_chart(recorded)});
  if (arguments.json) {
    print_json(trace_document(recorded));
  } else {
    print_for_people(recorded.prepared, recorded.configuration, *recorded.trace);
  }
}

}  // namespace

void add_trace_command(Verb app) {
  auto arguments = std::make_shared<TraceArguments>();
  Verb verb = app.add_verb("trace", "Power, clocks and temperature over time, around and during the launches");
  add_live_options(verb, *arguments);
  verb.add_option("-c,--config", arguments->configuration,
                  "The configuration, \"A=64, B=2\" or a JSON object; parameters left out take their defaults");
  verb.add_option("--seconds", arguments->seconds, "s of launches (3)");
  verb.add_option("--before", arguments->before, "s recorded before them (1)");
  verb.add_option("--after", arguments->after, "s recorded after them (2)");
  verb.add_option("--csv", arguments->csv, "Keep every value: time_s,series,value");
  add_figure_option(verb, arguments->figure, "power and core clock over time");
  add_json_option(verb, arguments->json);
  verb.footer(
      "Example: ergotune trace gemm.toml --config '{\"MWG\": 64}' --figure trace.svg --csv trace.csv\n"
      "In Python: ergotune.trace(problem, {\"MWG\": 64}, figure=\"trace.svg\")");
  verb.callback([arguments] { record(*arguments); });
}

}  // namespace ergotune::cli
