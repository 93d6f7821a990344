// A device whose configurations are measured one after the other by one thread, with its controls.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "evaluate/evaluator.hpp"
#include "evaluate/live/device_controls.hpp"

namespace ergotune {

/// What a runner has to do for a request.
RunOptions run_options(const EvaluationRequest& request);

/// Used by one thread at a time. Its end puts the clocks back.
class SerialDevice {
 public:
  void set_controls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters) {
    controls_ = std::make_unique<DeviceControls>(std::move(session), std::move(parameters));
  }
  /// "host (...), clocks set through tegra".
  std::string described(const std::string& device) const {
    return controls_ ? device + ", clocks set through " + controls_->id() : device;
  }
  /// With clocks more than one: what is seen beforehand can be put in order.
  std::size_t capacity() const { return controls_ ? 8 : 1; }

  void add(EvaluationRequest request) { queue_.push_back(std::move(request)); }
  std::size_t waiting() const { return queue_.size(); }
  void clear() { queue_.clear(); }
  /// The oldest of those that wait with the setting in force, while there are any. One has to wait.
  EvaluationRequest take_next();
  /// Sets, measures by `run` and judges, and again where it ran under another setting. `dropped`: the result is no
  /// longer wanted. `GPU`: EvaluationResult::GPU. Throws as DeviceControls does, and what `run` throws.
  EvaluationResult measure(
      const EvaluationRequest& request, const std::string& gpu,
      const std::function<Measurement(const RunOptions&)>& run,
      const std::function<bool()>& dropped = [] { return false; });

 private:
  std::unique_ptr<DeviceControls> controls_;
  std::deque<EvaluationRequest> queue_;
};

}  // namespace ergotune
