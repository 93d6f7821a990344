#include "tune/target/target_clocks.hpp"

#include <algorithm>

#include "ergotune/error.hpp"
#include "power/nvml_library.hpp"
#include "tune/plans/device_model.hpp"

namespace ergotune {
namespace {

using Suggested = std::map<ParameterKind, std::vector<double>>;

std::optional<double> from_profile(const std::string& name) {
  if (name.empty()) return std::nullopt;
  try {
    const DeviceProfile profile = load_device_profile(name);
    const auto base = profile.numbers.find("clock.base_mhz");
    return base == profile.numbers.end() ? std::nullopt : std::optional(base->second);
  } catch (const UserError&) {
    return std::nullopt;  // no profile for this device
  }
}

bool is_requested(const Target& target, const SetupOptions& options) {
  const auto& specs = target.problem.execution_parameters;
  return options.needs_model || std::ranges::any_of(specs, [](const ExecutionParameterSpec& spec) {
           return spec.kind == ParameterKind::core_clock_mhz && spec.choice == ExecutionParameterSpec::Choice::model;
         });
}

Suggested with(const Target& target, const SetupOptions& options) {
  Suggested suggested = options.suggested;
  if (target.device_model) suggested.try_emplace(ParameterKind::core_clock_mhz, suggested_clocks(*target.device_model));
  return suggested;
}

}  // namespace

bool convert_clock_parameters(Problem& problem) {
  static const std::map<std::string, ParameterKind> kinds = {{"nvml_gr_clock", ParameterKind::core_clock_mhz},
                                                             {"nvml_mem_clock", ParameterKind::memory_clock_mhz},
                                                             {"nvml_pwr_limit", ParameterKind::power_limit_w},
                                                             {"tegra_gr_clock", ParameterKind::core_clock_mhz}};
  bool any = false;
  for (Parameter& parameter : problem.parameters) {
    const auto kind = kinds.find(parameter.name);
    const bool numbers = std::ranges::all_of(parameter.values, [](const Value& value) { return value.is_number(); });
    if (kind == kinds.end() || !numbers || parameter.values.empty()) continue;
    parameter.kind = kind->second;
    any = true;
  }
  return any;
}

std::optional<double> base_clock_of(const std::string& device_name, Control& control) {
  if (const auto base = from_profile(device_name)) return base;
  const auto facts = nvml_gpu_facts(control.device_key());
  if (!facts) return std::nullopt;
  if (const auto base = from_profile(facts->name)) return base;
  const ControlRange range = control.range(ControlQuantity::core_clock_mhz);
  if (facts->default_core_clock_mhz && *facts->default_core_clock_mhz < range.high - 0.5)
    return facts->default_core_clock_mhz;
  return std::nullopt;
}

Suggested clocks_by_model(Target& target, const SetupOptions& options, Control& control) {
  if (is_requested(target, options) && !options.suggested.contains(ParameterKind::core_clock_mhz))
    target.device_model =
        std::make_shared<const DeviceModel>(model_of_gpu(options, target.device.id, control, target.notes));
  return with(target, options);
}

Suggested clocks_by_simulation(Target& target, const SetupOptions& options) {
  if (is_requested(target, options) && !options.suggested.contains(ParameterKind::core_clock_mhz)) {
    DeviceModelOptions model;
    model.setup.run.device = target.device.id;
    model.setup.run.seed = options.run.seed;
    target.device_model = std::make_shared<const DeviceModel>(measure_device_model(model));
  }
  return with(target, options);
}

void model_of_recording(Target& target, const SetupOptions& options, const Recording& recording) {
  if (!options.needs_model) return;
  try {
    DeviceModel model;
    model.of.gpu = target.device.id;
    model.sampling = samples_of(recording);
    model.model = fit_samples(model.sampling);
    target.device_model = std::make_shared<const DeviceModel>(std::move(model));
  } catch (const UserError& error) {
    target.notes.push_back(std::string("no power model can be fitted to the recording: ") + error.what());
  }
}

void set_energy_option(Problem& problem, const LiveOptions& live, const std::string& option, double value) {
  const auto requested =
      std::ranges::find_if(problem.observers, [](const ObserverSpec& spec) { return spec.name == "energy"; });
  if (requested != problem.observers.end()) {
    requested->options.try_emplace(option, std::vector<Value>{value});
    return;
  }
  ObserverSpec energy{"energy", {{"seconds", {live.energy_seconds}}, {option, {value}}}, {}};
  for (const std::string& sensor : live.sensors) energy.options["sensors"].emplace_back(sensor);
  problem.observers.push_back(std::move(energy));
}

}  // namespace ergotune
