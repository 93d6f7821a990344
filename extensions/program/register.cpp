// Registers whole programs as a kind of target.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "device/backend.hpp"
#include "ergotune/error.hpp"
#include "measure/energy/energy.hpp"
#include "measure/execution_parameters.hpp"
#include "power/guardian/guardian.hpp"
#include "power/sensors/sensor.hpp"
#include "problem/program.hpp"
#include "program/program.hpp"
#include "tune/target/target.hpp"
#include "tune/target/target_clocks.hpp"
#include "tune/target/target_parts.hpp"

namespace ergotune {
namespace {

std::vector<std::unique_ptr<Sensor>> sensors_of(const Target& target, const LiveOptions& live, Control* control) {
  std::vector<std::unique_ptr<Sensor>> sensors;
  const bool reported = target.problem.program->output.contains("energy");  // by the program itself
  if (!live.energy || (reported && live.sensors.empty())) return sensors;
  if (live.sensors.empty() && control && control->id() != "cpufreq") {
    // The preferred sensor of the GPU whose clocks are set.
    sensors.push_back(open_sensor(control->id()));
    return sensors;
  }
  EnergySources sources = energy_sources(live.sensors, target.device.name, {}, {}, true);
  sensors = std::move(sources.sensors);
  if (live.sensors.empty()) sensors.resize(1);
  require_disjoint(sensors);
  return sensors;
}

/// Throws UserError if the program is missing, as far as this is known before the build.
void refuse_missing(const Problem& problem) {
  const Program& program = *problem.program;
  const std::filesystem::path beside = folder_of_problem(problem.file);
  const std::string name = render_without_configuration(program.command.front(), beside);
  const std::string folder = program.folder ? render_without_configuration(*program.folder, beside) : ".";
  if (name.empty() || folder.empty()) return;
  if (name.find('/') != name.npos && !program.build.empty()) return;  // the build may create it
  if (!find_program(name, beside / folder).empty()) return;
  throw UserError(name.find('/') == name.npos
                      ? fmt::format("the program \"{}\" is not to be found in PATH; install it, or give its path", name)
                      : fmt::format("the program \"{}\" is not there, or is not a program: {}", name,
                                    (beside / folder / name).lexically_normal().string()),
                  program.place);
}

/// The device of a program: this machine.
DeviceInfo device_of_program(const Problem& problem, const SetupOptions& options) {
  if (!options.run.device.empty() && options.run.device != "program" && options.run.device != "host") {
    throw UserError(fmt::format(
        "the device \"{}\" runs kernels; a [program] runs on this machine: leave the device out, and name what is to "
        "be set and read, as in --control nvml:0 --sensor nvml:0{}",
        options.run.device, options.run.device.starts_with("sim:") ? ". Simulated devices know kernels only" : ""));
  }
  if (!options.run.node_commands.empty() || !options.run.nodes.empty())
    throw UserError("nodes measure kernels; a [program] runs on this machine, and may start others by itself");
  if (!problem.observers.empty())
    throw UserError(fmt::format("the observer \"{}\" watches kernels; a program has time, energy (--sensor), cpu_time, "
                                "peak_memory and what [program] output reads",
                                problem.observers.front().name),
                    problem.observers.front().place);
  const auto& clocks = problem.execution_parameters;
  const bool modelled = options.needs_model || std::ranges::any_of(clocks, [](const ExecutionParameterSpec& spec) {
                          return spec.choice == ExecutionParameterSpec::Choice::model;
                        });
  if (modelled)
    throw UserError(
        "a model of the device's clocks is fitted to a kernel, not to a program; give clocks as \"all\", a number, a "
        "range or a list, or let \"ergotune program\" fit one to the program itself");
  if (options.run.occupancy > 0) throw UserError("occupancy is of kernels; a program has none");
  refuse_missing(problem);
  DeviceInfo device = open_device("host")->info();
  device.id = device.backend = "program";
  return device;
}

ProgramEvaluator& open_evaluator(Target& target, const LiveOptions& live, Control* control) {
  auto evaluator = std::make_unique<ProgramEvaluator>(target.problem, target.constants, target.device, live,
                                                      sensors_of(target, live, control));
  ProgramEvaluator& opened = *evaluator;
  target.live = &opened;
  target.evaluator = std::move(evaluator);
  for (const std::string& note : opened.notes()) target.notes.push_back(note);
  return opened;
}

/// Opens the program of target.problem on this machine. Throws UserError for a device that runs no programs, for
/// settings that apply to kernels only, and if the program does not exist.
void open_program(Target& target, const SetupOptions& options) {
  // Clocks left behind by a killed session would distort every measurement.
  for (const RestoreReport& report : replay_stale_journals()) target.notes.push_back(report.summary);
  const bool named = convert_clock_parameters(target.problem);
  const LiveOptions live = live_options(target.problem, options);
  target.device = device_of_program(target.problem, options);
  target.constants = target.problem.constants_for(target.device.name, target.device.properties);
  std::unique_ptr<Control> control = find_control(target, target.device, options, named);
  if (control) {
    target.gpu_key = control->device_key();
    target.base_clock_mhz = base_clock_of(target.device.name, *control);
    resolve_execution_parameters(target.problem, *control, options.suggested);
  }
  if (options.adapt) options.adapt(target.problem, target.device.properties);
  build_space(target, options);
  ProgramEvaluator& evaluator = open_evaluator(target, live, control.get());
  set_conditions(target, options, live);
  if (!control) return;
  ControlSessionOptions control_options;
  control_options.take_over = options.take_over;
  auto session = ControlSession::open(std::move(control), control_options);
  for (const std::string& note : session->notes()) target.notes.push_back(note);
  evaluator.set_controls(std::move(session), target.space->parameters());
}

}  // namespace

void register_program() {
  register_target({[](const Problem& problem, const SetupOptions& options) {
                     return problem.program && !options.run.device.starts_with("replay:");
                   },
                   open_program});
}

}  // namespace ergotune
