#include "evaluate/live/live.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/hash.hpp"
#include "base/process/process.hpp"
#include "evaluate/live/scheduler.hpp"
#include "problem/files/includes.hpp"

namespace ergotune {

LiveOptions LiveOptions::from(const Settings& settings) {
  LiveOptions options;
  static_cast<LiveSettings&>(options) = settings;
  options.measure = MeasureOptions::from(settings);
  if (const double reference = settings.reference_seconds; reference > 0) {
    options.energy = true;
    options.time_limit = std::max(options.time_limit, 3 * reference + 30);
  }
  return options;
}

struct LiveEvaluator::State {
  Scheduler scheduler;
  explicit State(const Problem& problem, const LiveOptions& options)
      : scheduler(problem, options,
                  start_children(options.worker_command.empty() ? std::vector{own_program(), std::string("worker")}
                                                                : options.worker_command)) {}
};

static LiveOptions with_devices(const Problem& problem, LiveOptions options) {
  if (options.devices.empty() && names_several_devices(options.device))
    for (const DeviceInfo& device : devices_named(options.device, &problem)) options.devices.push_back(device.id);
  return options;
}

LiveEvaluator::LiveEvaluator(const Problem& problem, LiveOptions options)
    : state_(std::make_unique<State>(problem, with_devices(problem, std::move(options)))) {}
LiveEvaluator::~LiveEvaluator() = default;

const DeviceInfo& LiveEvaluator::device() const { return state_->scheduler.device(); }
const std::string& LiveEvaluator::compiler_identity() const { return state_->scheduler.compiler_identity(); }
std::vector<std::string> LiveEvaluator::notes() const { return state_->scheduler.notes(); }

bool LiveEvaluator::establish_reference(const std::vector<Configuration>& candidates) {
  return state_->scheduler.establish_reference(candidates);
}

void LiveEvaluator::set_controls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters,
                                 std::size_t device) {
  state_->scheduler.set_controls(std::make_unique<DeviceControls>(std::move(session), std::move(parameters)), device);
}
std::vector<DeviceInfo> LiveEvaluator::devices() const { return state_->scheduler.devices(); }
std::vector<DeviceShare> LiveEvaluator::boards() const { return state_->scheduler.boards(); }

std::string LiveEvaluator::description() const {
  const std::string control = state_->scheduler.control();
  std::vector<std::string> ids;
  for (const DeviceInfo& one : devices()) ids.push_back(one.id);
  const std::string words = fmt::format("{} ({})", fmt::join(ids, ", "), device().name);
  return control.empty() ? words : fmt::format("{}, clocks set through {}", words, control);
}

std::size_t LiveEvaluator::capacity() const { return state_->scheduler.capacity(); }
void LiveEvaluator::submit(EvaluationRequest request) { state_->scheduler.submit(std::move(request)); }
std::optional<EvaluationResult> LiveEvaluator::wait(double seconds) { return state_->scheduler.wait(seconds); }
std::size_t LiveEvaluator::pending() const { return state_->scheduler.pending(); }
void LiveEvaluator::cancel() { state_->scheduler.cancel(); }
void LiveEvaluator::set_journal(RunJournal* journal) { state_->scheduler.set_journal(journal); }
int LiveEvaluator::runner_pid() const { return state_->scheduler.runner_pid(); }

}  // namespace ergotune
