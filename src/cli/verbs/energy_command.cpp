// ergotune energy: measures the energy of one run of any program.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "cli/command.hpp"
#include "cli/output/progress.hpp"
#include "cli/run_here.hpp"
#include "measure/energy/region_monitor.hpp"

namespace ergotune::cli {
namespace {

struct EnergyArguments {
  std::vector<std::string> command, sensors;
  std::string output;
  double idle = 0;
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

void energy(const EnergyArguments& arguments) {
  require_program(arguments.command);
  RegionMonitor monitor(arguments.sensors);
  if (arguments.idle > 0) monitor.measure_idle(arguments.idle);
  TimeSpan span;
  monitor.set_program_runs(true);
  span.from = host_seconds();
  const int code = run_here(arguments.command);
  span.to = host_seconds();
  monitor.set_program_runs(false);
  const RegionEnergy found = monitor.energy(arguments.command.front(), {span});
  auto document = nlohmann::ordered_json::parse(found.json());
  document["command"] = arguments.command;
  document["exit_code"] = code;
  if (!arguments.output.empty()) write_named_file(arguments.output, document.dump(2) + "\n");
  print_energy(found);
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
  verb.add_option("-o,--output", arguments->output, "Write the energies to this file as JSON");
  verb.footer(
      "Examples:\n"
      "  ergotune energy -- ./simulate input.nml\n"
      "  ergotune energy --sensor nvml:0 --idle 2 -o energy.json -- python3 train.py\n"
      "The program keeps its input and output; the energy is printed on standard error, and the exit code is the "
      "program's.");
  verb.callback([arguments] { energy(*arguments); });
}

}  // namespace ergotune::cli
