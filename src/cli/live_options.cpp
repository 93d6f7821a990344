#include "cli/live_options.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "ergotune/evaluate/replay.hpp"
#include "ergotune/problem/load.hpp"

namespace ergotune::cli {

using Json = nlohmann::ordered_json;

void add_live_options(Verb verb, LiveArguments& a) {
  verb.add_option("FILE", a.file, "Problem file (TOML, T1 JSON)").required().existing_file();
  verb.add_option(
      "-d,--device", a.device,
      "Where to run: cuda:0, opencl, opencl:0:1, host, replay:FILE, sim:PROFILE (default: the best here)");
  verb.add_option("-o,--objective", a.objective,
                  "What to improve: time, energy, \"max gflops\", \"pareto(time, energy)\"");
  verb.add_option("-j,--jobs", a.jobs, "Compile workers (default: one per core)").between(1, 1024);
  verb.add_option("--precision", a.precision, "Wanted half-width of the 95 % interval over the value (0.01)")
      .between(1e-6, 10.0);
  verb.add_option("--time-limit", a.time_limit, "Seconds that one configuration may take on the device (30)")
      .positive();
  verb.add_option("--compile-time-limit", a.compile_time_limit, "Seconds that one compilation may take (120)")
      .positive();
  verb.add_option("--max-seconds", a.max_seconds,
                  "Seconds of timed launches per configuration at most (0.25)")
      .positive();
  verb.add_option("--sensor", a.sensors,
                  "Energy sensor: nvml:0, rapl:package-0, powersensor3:/dev/ttyACM0 ... (repeatable)");
  verb.add_option("--energy-budget", a.energy_budget, "Seconds of energy measurement per configuration")
      .positive();
  verb.add_option("--control", a.controls, "Clock and limit control: nvml:0, tegra, amdgpu:card0, cpufreq");
  verb.add_flag("--take-over", a.take_over,
                "Set clocks although somebody else seems to have locked them (they end at the defaults)");
  verb.add_option("--warm-up", a.warm_up, "Launches before the first timed one (1)").not_negative();
  verb.add_option("--min-repeats", a.min_repeats, "Timed samples at least (7)").between(2, 1000000);
  verb.add_option("--max-repeats", a.max_repeats, "Timed samples at most (1000)").between(2, 1000000);
  verb.add_flag("--cold-cache", a.cold_cache, "Flush the last-level cache before every timed launch");
  verb.add_flag("--no-verify", a.no_verify, "Do not check the kernel's outputs");
  verb.add_option("--cache-dir", a.cache_folder,
                  "Folder for compiled code (default: ~/.cache/ergotune/compiled)");
  verb.add_flag("--no-cache", a.no_cache, "Keep no compiled code on disk");
  verb.add_flag("--in-process", a.in_process,
                "Measure in this process: a kernel that crashes ends the session");
}

Problem load_with(const LiveArguments& a) {
  Problem problem;
  try {
    problem = load_problem(a.file);
  } catch (const UserError&) {
    // To replay a recording no other file is needed: it tells its parameters itself.
    if (!a.device || !a.device->starts_with("replay:")) throw;
    try {
      problem = problem_of(load_recording(a.file));
    } catch (const UserError&) {
    }
    if (problem.parameters.empty()) throw;
  }
  if (a.objective) {
    problem.objective = {};
    problem.objective.text = *a.objective;
  } else if (problem.defaults.objective) {
    problem.objective = {};
    problem.objective.text = *problem.defaults.objective;
  }
  return problem;
}

SetupOptions setup_with(const LiveArguments& a, const Problem& problem) {
  SetupOptions options = SetupOptions::from(problem);
  if (a.device) options.device = *a.device;
  if (!a.controls.empty()) options.controls = a.controls;
  options.take_over = a.take_over;
  options.in_process = a.in_process;
  LiveOptions& live = options.live;
  if (a.jobs) live.jobs = *a.jobs;
  if (a.precision) live.measure.precision = *a.precision;
  if (a.time_limit) live.time_limit = *a.time_limit;
  if (a.compile_time_limit) live.compile_time_limit = *a.compile_time_limit;
  if (a.max_seconds) live.measure.max_seconds = *a.max_seconds;
  if (a.energy_budget) live.energy_seconds = *a.energy_budget;
  // The stream must not end before what was asked for.
  live.measure.stream_seconds_limit = std::max(live.measure.stream_seconds_limit, live.energy_seconds + 1);
  if (!a.sensors.empty()) live.sensors = a.sensors;
  if (a.warm_up) live.measure.warm_up = *a.warm_up;
  if (a.min_repeats) live.measure.min_repeats = *a.min_repeats;
  if (a.max_repeats) live.measure.max_repeats = *a.max_repeats;
  if (a.cold_cache) live.measure.cold_cache = true;
  if (a.no_verify) live.measure.verify = false;
  if (a.no_cache) live.use_cache = false;
  if (a.cache_folder) live.cache_folder = *a.cache_folder;
  return options;
}

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_json(const Value& value) {
  return std::visit([](const auto& v) { return Json(v); }, value.data());
}

Json to_json(const std::vector<Parameter>& parameters, const Configuration& configuration) {
  Json object = Json::object();
  for (std::size_t i = 0; i < std::min(parameters.size(), configuration.size()); ++i) {
    object[parameters[i].name] = to_json(configuration[i]);
  }
  return object;
}

Json to_json(const Measurement& measurement) {
  Json quantities = Json::object();
  for (const auto& [name, quantity] : measurement.quantities) {
    Json entry{{"value", number_or_null(quantity.value)},
               {"standard_error", number_or_null(quantity.standard_error)},
               {"n", quantity.n},
               {"method", quantity.method}};
    if (!quantity.sensor.empty()) entry["sensor"] = quantity.sensor;
    entry["provenance"] = to_string(quantity.provenance);
    quantities[name] = std::move(entry);
  }
  Json metrics = Json::object();
  for (const auto& [name, value] : measurement.metrics) metrics[name] = number_or_null(value);
  Json document{{"status", to_string(measurement.status)},
                {"quantities", std::move(quantities)},
                {"metrics", std::move(metrics)}};
  if (!measurement.message.empty()) document["message"] = measurement.message;
  if (!measurement.warnings.empty()) document["warnings"] = measurement.warnings;
  return document;
}

}  // namespace ergotune::cli
