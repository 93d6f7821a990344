// ergotune energy: measures the energy of one run of any program.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/process/environment.hpp"
#include "cli/command.hpp"
#include "cli/companions.hpp"
#include "cli/output/progress.hpp"
#include "cli/run_here.hpp"
#include "measure/energy/region_monitor.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

struct EnergyArguments : NodeOptions {
  std::vector<std::string> command, sensors;
  std::string output;
  double idle = 0;
  std::optional<double> price, carbon;
};

std::string joules_of(const std::optional<double>& joules, double half_width, const std::optional<double>& at_most,
                      const std::string& why_not) {
  if (joules) return fmt::format("{} +- {}", human(*joules, "J"), human(half_width, "J"));
  if (at_most) return fmt::format("at most {} (too short for the sensor)", human(*at_most, "J"));
  return why_not.empty() ? "not known" : "not known: " + why_not;
}

void print_energy(const RegionEnergy& energy) {
  fmt::print(stderr, "\n  time          {}\n", human_duration(energy.seconds));
  for (const SensorEnergy& one : energy.sensors)
    fmt::print(stderr, "  {:<12}  {}\n", one.sensor, joules_of(one.joules, one.half_width, one.at_most, one.why_not));
  if (energy.sensors.size() > 1)
    fmt::print(stderr, "  in all        {}\n", joules_of(energy.joules, energy.half_width, energy.at_most, {}));
  if (energy.joules) fmt::print(stderr, "  mean power    {}\n", human(*energy.joules / energy.seconds, "W"));
  if (energy.above_idle)
    fmt::print(stderr, "  above idle    {} +- {}\n", human(*energy.above_idle, "J"),
               human(energy.above_idle_half_width, "J"));
}

std::optional<double> number_in(const Json& document, const char* key) {
  return document.at(key).is_null() ? std::nullopt : std::optional(document.at(key).get<double>());
}

/// One energy of a document: a sensor's, or a node's with all of its sensors.
SensorEnergy energy_in(const Json& document, const std::string& name) {
  if (document.contains("error")) {
    SensorEnergy lost;
    lost.sensor = name;
    lost.why_not = document["error"];
    return lost;
  }
  return {name,
          number_in(document, "joules"),
          number_in(document, "half_width").value_or(0),
          number_in(document, "at_most"),
          number_in(document, "above_idle"),
          number_in(document, "above_idle_half_width").value_or(0),
          document.contains("why_not") && document["why_not"].is_string() ? document["why_not"] : ""};
}

/// The energies of what a companion found: by sensor, or by node.
RegionEnergy energy_of(const Json& found, const std::string& name, const TimeSpan& span) {
  std::vector<SensorEnergy> energies;
  if (found.is_array())
    for (const Json& node : found)
      energies.push_back(energy_in(node, node.at("node").is_null() ? node.at("worker") : node.at("node")));
  else
    for (const Json& sensor : found.at("sensors")) energies.push_back(energy_in(sensor, sensor.at("sensor")));
  return sum_of(name, {span}, std::move(energies));
}

/// The job's fields by which Slurm's accounting knows it; null outside of a job.
Json slurm_job() {
  if (environment_variable("SLURM_JOB_ID").empty()) return nullptr;
  Json job;
  for (const std::string name : {"JOB_ID", "JOB_NAME", "JOB_USER", "JOB_ACCOUNT", "JOB_PARTITION", "JOB_NODELIST"})
    if (const std::string value = environment_variable(("SLURM_" + name).c_str()); !value.empty()) job[name] = value;
  return job;
}

void energy(const EnergyArguments& arguments) {
  require_program(arguments.command);
  const Json what{{"energy", {{"sensors", arguments.sensors}, {"idle", arguments.idle}}}};
  const auto companion = arguments.any() ? companion_on_nodes(arguments, what) : make_companion(what);
  TimeSpan span;
  companion->begin();
  span.from = host_seconds();
  const int code = run_here(arguments.command);
  span.to = host_seconds();
  const Json found = Json::parse(companion->end());
  const RegionEnergy energy = energy_of(found, arguments.command.front(), span);
  auto document = Json::parse(energy.json());
  if (found.is_array()) {
    document["nodes"] = found;
    for (const SensorEnergy& node : energy.sensors)
      document["joules_by_node"][node.sensor] = node.joules ? Json(*node.joules) : Json();
  }
  const auto scaled = [&](double factor) { return energy.joules ? Json(*energy.joules * factor) : Json(); };
  constexpr double kWh = 3.6e6;  // J
  document["kwh"] = scaled(1 / kWh);
  if (arguments.price) document["cost"] = scaled(*arguments.price / kWh);
  if (arguments.carbon) document["co2_kg"] = scaled(*arguments.carbon * 1e-3 / kWh);
  document["slurm"] = slurm_job();
  document["command"] = arguments.command;
  document["exit_code"] = code;
  if (!arguments.output.empty()) write_named_file(arguments.output, document.dump(2) + "\n");
  print_energy(energy);
  if (energy.joules && (arguments.price || arguments.carbon)) {
    fmt::print(stderr, "  in kWh        {:.4g}\n", *energy.joules / kWh);
    if (arguments.price) fmt::print(stderr, "  cost          {:.4g}\n", document["cost"].get<double>());
    if (arguments.carbon) fmt::print(stderr, "  CO2           {:.4g} kg\n", document["co2_kg"].get<double>());
  }
  if (code != 0) throw Exit{code};
}

}  // namespace

void add_energy_command(Verb app) {
  auto arguments = std::make_shared<EnergyArguments>();
  Verb verb = app.add_verb("energy", "Measure the energy of any program, run once as it is");
  verb.add_option("PROGRAM", arguments->command, "The program and its arguments, after --").required().take_all();
  verb.add_option("--sensor", arguments->sensors,
                  "Read this sensor; repeatable, energies are added (the best one of each device here)");
  verb.add_option("--idle", arguments->idle, "Measure idle power for so many seconds first, and print what is above it")
      .kind("SECONDS")
      .positive();
  add_node_options(verb, *arguments, "Measure on");
  verb.add_option("--price", arguments->price, "Price of a kWh, in any currency: print the cost")
      .kind("NUMBER")
      .positive();
  verb.add_option("--co2", arguments->carbon, "Grams of CO2 per kWh: print the emission").kind("NUMBER").positive();
  verb.add_option("-o,--output", arguments->output, "Write the energies to this file as JSON");
  verb.footer(
      "Examples:\n"
      "  ergotune energy -- ./simulate input.nml\n"
      "  ergotune energy --sensor nvml:0 --idle 2 -o energy.json -- python3 train.py\n"
      "  ergotune energy --nodes slurm --price 0.25 --co2 380 -o job.json -- srun ./simulate input.nml\n"
      "The program keeps its input and output; the energy is printed on standard error, and the exit code is the "
      "program's.\n"
      "In Python: ergotune.energy(\"nvml:0\")");
  verb.callback([arguments] { energy(*arguments); });
}

}  // namespace ergotune::cli
