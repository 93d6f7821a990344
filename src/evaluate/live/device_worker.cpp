#include "evaluate/live/device_worker.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.hpp"

namespace ergotune {

using namespace protocol;

namespace {

/// Reasons that are conditions of the node, not of the configuration: heat, a power brake, another device's clock. A
/// power cap is not among them: a kernel that reaches the device's limit meets it in every run.
constexpr std::array kDisturbances = {"thermal", "hardware slowdown", "hardware thermal", "power brake", "sync boost"};

/// s that a cancelled job may still run; starting a runner takes about as long.
constexpr double kCancelSeconds = 1.5;

}  // namespace

std::vector<std::string> DeviceWorker::open(const std::atomic<bool>* interrupted) {
  const Ready ready = handle_.start_and_wait("runner", interrupted);
  device_ = ready.device;
  compiler_ = ready.compiler;
  has_reference_ = ready.has_reference;
  opened_at_ = host_seconds();
  return ready.notes;
}

DeviceShare DeviceWorker::state() const {
  const double busy = busy_ + (job_ ? handle_.since_request() : 0);
  return {gpu(), device_.id, device_.name, results_, busy, std::max(0.0, host_seconds() - opened_at_ - busy), false};
}

std::vector<JobPointer> DeviceWorker::in_order(const std::vector<JobPointer>& waiting) const {
  std::vector<JobPointer> mine;
  for (const JobPointer& job : waiting) {
    if (may_run(*job)) mine.push_back(job);
  }
  if (!controls_) return mine;
  std::vector<ControlSetting> settings;
  for (const JobPointer& job : mine) settings.push_back(job->setting);
  const auto tired = std::ranges::find_if(mine, [](const auto& job) { return job->overtaken_count >= kPatience; });
  const ControlSetting* first = tired == mine.end() ? nullptr : &(*tired)->setting;
  std::vector<JobPointer> ordered;
  for (const std::size_t i : controls_->order(settings, first)) ordered.push_back(mine[i]);
  return ordered;
}

JobPointer DeviceWorker::next(const std::vector<JobPointer>& waiting) const {
  if (!controls_) {
    const auto ready =
        std::ranges::find_if(waiting, [&](const JobPointer& job) { return may_run(*job) && job->compiled(); });
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
  options_ = run_options(job.request);
  options_.reference_only = job.reference_only;
  return sets_clocks(job) ? controls_->begin(job.setting, options_) : std::nullopt;
}

void DeviceWorker::run(JobPointer job) {
  Run run;
  run.id = job->request.id;
  run.configuration = job->request.configuration;
  for (const auto& binary : job->code) run.binaries.push_back(*binary);
  run.options = options_;
  job_ = std::move(job);
  handle_.ask(std::move(run), time_limit_);
}

std::optional<DeviceWorker::Finished> DeviceWorker::take(Ran ran) {
  if (!ran.healthy) handle_.clear();
  has_reference_ = ran.has_reference;
  if (std::exchange(cancelled_, false)) return std::nullopt;
  Finished finished{std::exchange(job_, nullptr), std::move(ran.measurement), false};
  finished.job->ours += std::max(0.0, handle_.since_request() - ran.seconds);
  if (sets_clocks(*finished.job)) {
    finished.must_rerun = controls_->end(finished.job->setting, options_, finished.measurement, finished.job->again);
    finished.disturbed = controls_->disturbed();
  }
  busy_ += handle_.since_request();
  if (!finished.must_rerun && disturbed(finished.job->request, finished.measurement))
    finished.must_rerun = !std::exchange(finished.job->disturbed, true);
  results_ += !finished.must_rerun && !finished.job->reference_only;
  return finished;
}

/// Whether the configuration ran under a condition that the reference on this device did not meet; adds a warning then.
bool DeviceWorker::disturbed(const EvaluationRequest& request, Measurement& measurement) {
  std::set<std::string> reasons;
  for (const std::string& warning : measurement.warnings)
    if (std::ranges::find(kDisturbances, warning) != kDisturbances.end()) reasons.insert(warning);
  if (request.reference) {
    reference_reasons_ = reasons;
    compares_ = true;
  }
  std::erase_if(reasons, [&](const std::string& reason) { return reference_reasons_.contains(reason); });
  if (reasons.empty() || !compares_) return false;
  measurement.warnings.push_back(
      fmt::format("disturbed: the reference on this device met no {}", fmt::join(reasons, ", ")));
  return true;
}

std::optional<DeviceWorker::Finished> DeviceWorker::take(const WorkerLoss& lost) {
  cancelled_ = false;
  if (!job_) return std::nullopt;
  const bool crashed = lost.why == WorkerLoss::Why::ended && lost.ending.signal != 0 && !lost.killed();
  const char* hint = crashed ? "\nA buffer may be shorter (its count) than what the kernel reads or writes" : "";
  Measurement failed =
      lost.why == WorkerLoss::Why::late
          ? failed_measurement(Status::timeout,
                               fmt::format("stopped after {:g} s on the device (time limit): smaller sizes (--set "
                                           "NAME=VALUE), or a longer --time-limit",
                                           time_limit_))
          : failed_measurement(Status::runtime_error, lost.as_text("the kernel's process") + hint);
  failed.measure_seconds = handle_.since_request();  // a hang costs its time limit
  busy_ += failed.measure_seconds;
  // The kernel itself may have caused the kill, or another process needed the memory.
  const bool must_rerun = lost.killed() && !std::exchange(job_->killed, true);
  results_ += !must_rerun && !job_->reference_only;
  return Finished{std::exchange(job_, nullptr), std::move(failed), must_rerun};
}

void DeviceWorker::cancel() {
  if (!job_) return;
  job_.reset();
  cancelled_ = true;
  handle_.answer_within(kCancelSeconds);
}

}  // namespace ergotune
