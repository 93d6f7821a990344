// A device with its controls whose configurations are measured one after the other on one thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "evaluate/evaluator.hpp"
#include "evaluate/live/device_controls.hpp"
#include "measure/runner.hpp"

namespace ergotune {

/// Adds the observers that measure energy and monitor the device. Throws UserError that lists the sensors tried if none
/// is usable. If the problem itself requests the observer "energy", that observer measures.
void add_energy_observers(Runner& runner, const DeviceInfo& device, const std::vector<std::string>& sensors,
                          double energy_seconds, const MeasureOptions& measure, std::vector<std::string>& notes);

/// The runner's options for a request.
RunOptions run_options(const EvaluationRequest& request);

/// Not thread-safe. The destructor restores the clocks.
class SerialDevice {
 public:
  void set_controls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters) {
    controls_ = std::make_unique<DeviceControls>(std::move(session), std::move(parameters));
  }
  /// Appends the controls to a description: "host (...), clocks set through tegra".
  std::string described(const std::string& device) const {
    return controls_ ? device + ", clocks set through " + controls_->id() : device;
  }
  /// More than one with clocks: waiting requests can be ordered by setting.
  std::size_t capacity() const { return controls_ ? 8 : 1; }

  void add(EvaluationRequest request) { queue_.push_back(std::move(request)); }
  std::size_t waiting() const { return queue_.size(); }
  void clear() { queue_.clear(); }
  /// Removes and returns the oldest request with the current setting, else the next in order. There must be one.
  EvaluationRequest take_next();
  /// Applies the setting, measures through `run` and checks the clocks; measures again if it ran under another setting.
  /// `dropped`: returns whether the result is no longer needed. `gpu`: becomes EvaluationResult::gpu. Throws as
  /// DeviceControls does, and whatever `run` throws.
  EvaluationResult measure(
      const EvaluationRequest& request, const std::string& gpu,
      const std::function<Measurement(const RunOptions&)>& run,
      const std::function<bool()>& dropped = [] { return false; });

 private:
  std::unique_ptr<DeviceControls> controls_;
  std::deque<EvaluationRequest> queue_;
};

}  // namespace ergotune
