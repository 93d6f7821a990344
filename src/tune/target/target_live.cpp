// The target that runs kernels on devices.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "device/backend.hpp"
#include "ergotune/error.hpp"
#include "evaluate/live/in_process_evaluator.hpp"
#include "evaluate/live/live_evaluator.hpp"
#include "kernel/configure.hpp"
#include "kernel/problem_notes.hpp"
#include "kernel/round.hpp"
#include "measure/execution_parameters.hpp"
#include "measure/observers/observer_registry.hpp"
#include "measure/verify/output_check.hpp"
#include "power/guardian/guardian.hpp"
#include "power/sensors/sensor.hpp"
#include "problem/tables/quantity.hpp"
#include "problem/tables/setting_table.hpp"
#include "tune/target/target_clocks.hpp"
#include "tune/target/target_parts.hpp"

namespace ergotune {
namespace {

/// Whether the objective uses quantities that only a sensor or the GPU's monitor provides.
bool needs_sensor(const Objective& objective) {
  const auto list = quantities();
  return std::ranges::any_of(
      list, [&](const QuantityInfo& info) { return info.needs_sensor() && objective.needs(std::string(info.name)); });
}

/// The measurement settings of a session: all settings in use that affect results, and the observers whose quantities
/// the rows contain.
std::string conditions_of(const SetupOptions& options, const LiveOptions& live, const Problem& problem) {
  RunConfig used;
  static_cast<MeasureSettings&>(used) = live.measure;
  static_cast<LiveSettings&>(used) = live;
  used.controls = options.run.controls;
  std::string text = conditions_of(used, live.energy);
  if (const auto* verifier = options.verifier.target<IdentifiedVerifier>())
    text += ", verified by function " + verifier->identity;
  for (const ObserverSpec& observer : problem.observers) {
    text += ", observed by " + observer.name;
    for (const auto& [name, values] : observer.options)
      for (const Value& value : values) text += fmt::format(" {}={}", name, value.to_string());
  }
  return text;
}

/// The controls of all devices; empty if one device has no usable control.
std::vector<std::unique_ptr<Control>> find_controls(Target& target, const SetupOptions& options, bool named) {
  const std::vector<DeviceInfo> devices = target.live->devices();
  if (devices.size() > 1 && !options.run.controls.empty())
    throw UserError("--control names the control of one device; several devices have their own each: leave it out");
  std::vector<std::unique_ptr<Control>> controls;
  for (const DeviceInfo& device : devices) {
    auto control = find_control(target, device, options, named);
    if (!control) return {};
    controls.push_back(std::move(control));
  }
  return controls;
}

/// Checks several devices: all must be of one kind, and no sensor may cover only one of them, or all at once.
void check_several(const SetupOptions& options, const Problem& problem) {
  const auto devices = devices_named(options.run.device, &problem);
  if (by_kind(devices).size() > 1)
    throw UserError(
        fmt::format("\"{}\" names devices of different kinds, whose results cannot be compared; each kind is a session "
                    "of its own, which `ergotune tune` begins by itself; elsewhere name one kind at a time",
                    options.run.device));
  if (devices.size() < 2 || options.run.sensors.empty()) return;
  for (const SensorInfo& sensor : list_sensors()) {
    const auto& named = options.run.sensors;
    if (std::ranges::find(named, sensor.id) == named.end()) continue;
    if (sensor.scope == SensorScope::gpu || sensor.scope == SensorScope::chip)
      throw UserError(fmt::format(
          "the sensor {} belongs to one of several devices; without --sensor each is measured by its own", sensor.id));
    if (!options.run.quiet_node)
      throw UserError(fmt::format(
          "the sensor {} sees all devices of this machine at once; --quiet-node measures with the others idle",
          sensor.id));
  }
}

std::string measured_identity(const Target& target) {
  const DeviceInfo& device = target.device;
  const bool several = !target.evaluator->gpus().empty();
  return fmt::format("{} | {} | {}",
                     several               ? "devices of type " + device.name
                     : device.uuid.empty() ? device.name
                                           : device.uuid,
                     device.driver_version, target.live->compiler_identity());
}

template <class LiveKind>
ControlledDevice& keep_evaluator(Target& target, std::unique_ptr<LiveKind> evaluator) {
  LiveKind& kept = *evaluator;
  target.live = &kept;
  target.evaluator = std::move(evaluator);
  target.device = kept.device();
  for (const std::string& note : kept.notes()) target.notes.push_back(note);
  return kept;
}

ControlledDevice& open_evaluator(Target& target, const SetupOptions& options, const LiveOptions& live) {
  const bool here =
      !target.problem.device_of_external_memory().empty();  // its addresses are valid in this process only
  if (options.in_process || options.verifier || !options.observers.empty() || here) {
    if (names_several_devices(options.run.device))
      throw UserError(
          "several devices are measured by worker processes; callables and memory of this process need one device");
    auto evaluator = std::make_unique<InProcessEvaluator>(target.problem, live);
    if (options.verifier) evaluator->runner().set_verifier(options.verifier);
    for (const auto& observer : options.observers) evaluator->runner().add_observer(observer);
    return keep_evaluator(target, std::move(evaluator));
  }
  return keep_evaluator(target, std::make_unique<LiveEvaluator>(target.problem, live));
}

void note_source_mistakes(Target& target) {
  for (std::string& message : source_notes(target.original, target.constants, target.device.backend))
    target.notes.push_back(std::move(message));
  for (const Kernel& kernel : target.original.kernels) {
    const Launch& launch = kernel.launch;
    if (!(launch.grid.empty() && launch.global.empty() && launch.block.empty()) &&
        std::ranges::none_of(std::array{Language::cuda, Language::hip, Language::opencl},
                             [&](Language language) { return kernel.source_for(language) != nullptr; }))
      target.notes.push_back(
          "the launch of the problem is ignored: a function of the host is called once and contains its own loops; "
          "remove \"grid\", \"global\" and \"block\", and use their parameters in the function");
  }
}

/// Whether the objective, or a metric of the problem, names a quantity.
bool names_quantity(const Problem& problem, const SetupOptions& options, const std::string& name) {
  const auto by = [&](const Metric& metric) {
    const auto names = metric.expression.names();
    return std::ranges::find(names, name) != names.end();
  };
  return objective_of(problem, options.further_metrics).needs(name) || std::ranges::any_of(problem.metrics, by);
}

}  // namespace

std::unique_ptr<Control> find_control(Target& target, const DeviceInfo& device, const SetupOptions& options,
                                      bool named) {
  if (target.problem.execution_parameters.empty() && !named) {
    if (options.run.controls.empty()) return nullptr;
    throw UserError(fmt::format(
        "the control \"{}\" has nothing to set: the problem has no [execution] parameters such as core_clock_mhz = 5",
        options.run.controls.front()));
  }
  std::string why_not;
  std::unique_ptr<Control> control;
  if (options.run.controls.size() > 1) throw UserError("one device takes one --control");
  if (!options.run.controls.empty()) {
    control = usable_control(options.run.controls.front(), &why_not);
  } else {
    control = control_for_device(device.uuid, device.pci_address, device.is_cpu, &why_not);
  }
  if (!control && named)
    throw UserError("parameters such as nvml_gr_clock set clocks and limits, and that is not possible here: " +
                    why_not);
  if (!control) {
    target.notes.push_back("clocks and limits are left as they are: " + why_not);
    target.problem.execution_parameters.clear();
  }
  return control;
}

void set_conditions(Target& target, const SetupOptions& options, const LiveOptions& live) {
  target.identity = measured_identity(target);
  target.conditions = conditions_of(options, live, target.original) + options.key;
}

LiveOptions live_options(Problem& problem, const SetupOptions& options) {
  LiveOptions live = LiveOptions::from(options.run);
  live.worker_command = options.worker_command;
  live.compile_share = options.compile_share;
  live.interrupted = options.interrupted;
  live.energy = live.energy || options.energy || !live.sensors.empty() ||
                needs_sensor(objective_of(problem, options.further_metrics));
  for (ObserverSpec& spec :
       problem.observers) {  // --sensor and --energy-budget also apply to an observer with other options
    if (spec.name != "energy") continue;
    if (!live.sensors.empty()) spec.options.try_emplace("sensors", live.sensors.begin(), live.sensors.end());
    if (live.energy_seconds > 0) spec.options.try_emplace("seconds", std::vector<Value>{live.energy_seconds});
    const auto exactly = spec.options.find("exactly");
    if (exactly != spec.options.end() && !exactly->second.empty() && exactly->second.front().is_number()) {
      double& limit = live.measure.stream_seconds_limit;
      limit = std::max(limit, exactly->second.front().as_real() + 1);
    }
  }
  constexpr double kIdlePause = 4;  // s; a GPU drops its clocks within a second or two of idling
  constexpr double kCelsius = 50;
  if (names_quantity(problem, options, "idle_subtracted_energy")) {
    live.energy = true;
    set_energy_option(problem, live, "idle", kIdlePause);
  }
  if (names_quantity(problem, options, "corrected_energy")) {
    live.energy = true;
    set_energy_option(problem, live, "temperature", kCelsius);
  }
  return live;
}

void open_live(Target& target, const SetupOptions& options) {
  // Clocks left behind by a killed session would distort every measurement.
  for (const RestoreReport& report : replay_stale_journals()) target.notes.push_back(report.summary);
  const bool named = convert_clock_parameters(target.problem);
  const LiveOptions live = live_options(target.problem, options);
  if (names_several_devices(options.run.device)) check_several(options, target.problem);
  ControlledDevice& controlled = open_evaluator(target, options, live);
  target.constants = target.problem.constants_for(target.device.name, target.device.properties);
  note_source_mistakes(target);
  add_problem_notes(target, options);
  for (std::string& note : race_notes(target.original)) target.notes.push_back(std::move(note));
  std::vector<std::unique_ptr<Control>> controls = find_controls(target, options, named);
  if (!controls.empty()) {
    Control& control = *controls.front();
    target.gpu_key = control.device_key();
    target.base_clock_mhz = base_clock_of(target.device.name, control);
    resolve_execution_parameters(target.problem, control, clocks_by_model(target, options, control));
  }
  if (options.adapt) options.adapt(target.problem, target.device.properties);
  build_space(target, options);
  set_conditions(target, options, live);
  for (std::size_t i = 0; i < controls.size(); ++i) {
    ControlSessionOptions control_options;
    control_options.take_over = options.take_over;
    auto session = ControlSession::open(std::move(controls[i]), control_options);
    for (const std::string& note : session->notes()) target.notes.push_back(note);
    controlled.set_controls(std::move(session), target.space->parameters(), i);
  }
}

}  // namespace ergotune
