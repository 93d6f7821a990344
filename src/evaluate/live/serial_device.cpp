#include "evaluate/live/serial_device.hpp"

#include "ergotune/problem.hpp"
#include "measure/observers/observer_registry.hpp"

namespace ergotune {

void add_energy_observers(Runner& runner, const DeviceInfo& device, const std::vector<std::string>& sensors,
                          double energy_seconds, const MeasureOptions& measure, std::vector<std::string>& notes) {
  if (runner.observes("energy")) return;
  ObserverSpec energy{"energy", {{"seconds", {energy_seconds}}}, {}};
  if (!sensors.empty()) energy.options["sensors"].assign(sensors.begin(), sensors.end());
  runner.add_observer(make_observer(energy, {device, measure, &notes}));
}

RunOptions run_options(const EvaluationRequest& request) {
  RunOptions run;
  run.settle_seconds = request.settle_seconds;
  run.give_up_above = request.repeat ? 1e300 : request.give_up_above;
  run.objective_quantity = request.objective_quantity;
  run.energy_up_to = request.energy_up_to;
  run.resources_only = request.resources_only;
  return run;
}

EvaluationRequest SerialDevice::take_next() {
  auto next = queue_.begin();
  if (controls_) {
    std::vector<ControlSetting> settings;
    for (const EvaluationRequest& request : queue_) settings.push_back(controls_->setting_of(request.configuration));
    next += static_cast<std::ptrdiff_t>(controls_->order(settings).front());
  }
  EvaluationRequest request = std::move(*next);
  queue_.erase(next);
  return request;
}

EvaluationResult SerialDevice::measure(const EvaluationRequest& request, const std::string& gpu,
                                       const std::function<Measurement(const RunOptions&)>& run,
                                       const std::function<bool()>& dropped) {
  EvaluationResult result{request.id, request.index, {}, gpu};
  const bool sets = controls_ && !request.resources_only;
  const ControlSetting setting = sets ? controls_->setting_of(request.configuration) : ControlSetting();
  for (bool again = true, repeated = false; again;) {
    RunOptions options = run_options(request);
    if (auto refusal = sets ? controls_->begin(setting, options) : std::nullopt) {
      result.measurement = std::move(*refusal);
      break;
    }
    result.measurement = run(options);
    again = sets && !dropped() && controls_->end(setting, options, result.measurement, repeated);
  }
  result.disturbed = sets && controls_->disturbed();
  return result;
}

}  // namespace ergotune
