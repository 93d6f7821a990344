#include "evaluate/live/slot.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.hpp"

namespace ergotune {

using namespace protocol;

Measurement failed_measurement(Status status, const std::string& message) {
  Measurement measurement;
  measurement.status = status;
  measurement.message = message;
  measurement.finished_at = wall_seconds();
  return measurement;
}

namespace {

/// Conditions of the node, not of the configuration: heat, a brake, another board's clock. A power cap is not among
/// them: a kernel that draws the board's limit meets it each time.
constexpr std::array kDisturbances = {"thermal", "hardware slowdown", "hardware thermal", "power brake", "sync boost"};

}  // namespace

std::vector<std::string> DeviceWorker::open() {
  const Ready ready = seat_.start_and_wait("runner");
  device_ = ready.device;
  compiler_ = ready.compiler;
  has_reference_ = ready.has_reference;
  opened_at_ = host_seconds();
  return ready.notes;
}

DeviceShare DeviceWorker::state() const {
  const double busy = busy_ + (job_ ? seat_.since_asked() : 0);
  return {board(), device_.id, device_.name, results_, busy, std::max(0.0, host_seconds() - opened_at_ - busy), false};
}

std::vector<JobPointer> DeviceWorker::in_order(const std::vector<JobPointer>& waiting) const {
  std::vector<JobPointer> mine;
  for (const JobPointer& job : waiting) {
    if (may_run(*job)) mine.push_back(job);
  }
  if (!controls_) return mine;
  std::vector<ControlSetting> settings;
  for (const JobPointer& job : mine) settings.push_back(job->setting);
  const auto tired =
      std::find_if(mine.begin(), mine.end(), [](const auto& job) { return job->passed_by >= kPatience; });
  const ControlSetting* first = tired == mine.end() ? nullptr : &(*tired)->setting;
  std::vector<JobPointer> ordered;
  for (const std::size_t i : controls_->order(settings, first)) ordered.push_back(mine[i]);
  return ordered;
}

JobPointer DeviceWorker::next(const std::vector<JobPointer>& waiting) const {
  if (!controls_) {
    const auto ready = std::find_if(waiting.begin(), waiting.end(),
                                    [&](const JobPointer& job) { return may_run(*job) && job->compiled(); });
    return ready == waiting.end() ? nullptr : *ready;
  }
  const std::vector<JobPointer> ordered = in_order(waiting);
  for (const JobPointer& job : ordered) {
    if (job->setting != ordered.front()->setting) break;
    if (job->compiled()) return job;
  }
  return nullptr;
}

std::optional<Measurement> DeviceWorker::apply_setting(const Job& job) {
  if (!controls_ || job.reference_only || job.request.resources_only || controls_->must_look()) return std::nullopt;
  return controls_->apply(job.setting);
}

void DeviceWorker::run(JobPointer job) {
  const EvaluationRequest& request = job->request;
  Run run;
  run.id = request.id;
  run.configuration = request.configuration;
  for (const auto& binary : job->code) run.binaries.push_back(*binary);
  run.options.give_up_above = request.repeat ? 1e300 : request.give_up_above;
  run.options.objective_quantity = request.objective_quantity;
  run.options.reference_only = job->reference_only;
  run.options.resources_only = request.resources_only;
  looking_ = false;
  if (controls_ && !job->reference_only && !request.resources_only) {
    controls_->prepare(run.options, job->setting);
    looking_ = run.options.look_only;
  }
  job_ = std::move(job);
  seat_.ask(std::move(run), time_limit_);
}

DeviceWorker::Finished DeviceWorker::take(Ran ran) {
  Finished finished{std::exchange(job_, nullptr), std::move(ran.measurement), false};
  finished.job->ours += std::max(0.0, seat_.since_asked() - ran.seconds);
  has_reference_ = ran.has_reference;
  if (looking_ && usable(finished.measurement.status)) {
    controls_->look(finished.measurement);
    finished.wanted_again = true;
  } else if (controls_ && !looking_ && !finished.job->reference_only && !finished.job->request.resources_only) {
    finished.wanted_again =
        controls_->judge(finished.job->setting, finished.measurement, std::exchange(finished.job->again, true));
    finished.disturbed = controls_->disturbed();
  }
  busy_ += seat_.since_asked();
  if (!finished.wanted_again && disturbed(finished.job->request, finished.measurement))
    finished.wanted_again = !std::exchange(finished.job->disturbed, true);
  results_ += !finished.wanted_again && !finished.job->reference_only;
  if (!ran.healthy) seat_.clear();
  return finished;
}

/// Whether it ran under a condition of the node that this board's reference did not meet; told in a warning.
bool DeviceWorker::disturbed(const EvaluationRequest& request, Measurement& measurement) {
  std::set<std::string> reasons;
  for (const std::string& warning : measurement.warnings)
    if (std::find(kDisturbances.begin(), kDisturbances.end(), warning) != kDisturbances.end()) reasons.insert(warning);
  if (request.reference) {
    reference_reasons_ = reasons;
    compares_ = true;
  }
  std::erase_if(reasons, [&](const std::string& reason) { return reference_reasons_.contains(reason); });
  if (reasons.empty() || !compares_) return false;
  measurement.warnings.push_back(
      fmt::format("disturbed: the reference on this board met no {}", fmt::join(reasons, ", ")));
  return true;
}

std::optional<DeviceWorker::Finished> DeviceWorker::take(const Lost& lost) {
  if (!job_) return std::nullopt;
  Measurement failed =
      lost.why == Lost::Why::late
          ? failed_measurement(Status::timeout,
                               fmt::format("stopped after {:g} s on the device (--time-limit)", time_limit_))
          : failed_measurement(Status::runtime_error, lost.in_words("the kernel's process"));
  failed.measure_seconds = seat_.since_asked();  // a hang costs its time limit
  busy_ += failed.measure_seconds;
  // Whoever killed it may have had reasons of their own, or memory was short for another process's sake.
  const bool wanted_again = lost.killed() && !std::exchange(job_->killed, true);
  results_ += !wanted_again && !job_->reference_only;
  return Finished{std::exchange(job_, nullptr), std::move(failed), wanted_again};
}

void DeviceWorker::cancel() {
  if (job_) seat_.clear();
  job_.reset();
}

}  // namespace ergotune
