#include "evaluate/slot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ergotune/base/clock.hpp"

namespace ergotune {

using namespace protocol;

Measurement failed_measurement(Status status, const std::string& message) {
  Measurement measurement;
  measurement.status = status;
  measurement.message = message;
  measurement.finished_at = wall_seconds();
  return measurement;
}

std::vector<std::string> Slot::open() {
  const Ready ready = seat_.start_and_wait("runner");
  device_ = ready.device;
  has_reference_ = ready.has_reference;
  return ready.notes;
}

std::vector<JobPointer> Slot::in_order(const std::vector<JobPointer>& waiting) const {
  std::vector<JobPointer> mine;
  for (const JobPointer& job : waiting) {
    if (!job->slot || *job->slot == number_) mine.push_back(job);
  }
  if (!controls_) return mine;
  std::vector<ControlSetting> settings;
  for (const JobPointer& job : mine) settings.push_back(job->setting);
  const auto tired = std::find_if(mine.begin(), mine.end(), [](const auto& job) { return job->passed_by >= kPatience; });
  const ControlSetting* first = tired == mine.end() ? nullptr : &(*tired)->setting;
  std::vector<JobPointer> ordered;
  for (const std::size_t i : controls_->order(settings, first)) ordered.push_back(mine[i]);
  return ordered;
}

JobPointer Slot::next(const std::vector<JobPointer>& waiting) const {
  const std::vector<JobPointer> ordered = in_order(waiting);
  for (const JobPointer& job : ordered) {
    if (job->setting != ordered.front()->setting) break;
    if (job->compiled()) return job;
  }
  return nullptr;
}

std::optional<Measurement> Slot::apply_setting(const Job& job) {
  if (!controls_ || job.reference_only || job.request.resources_only || controls_->must_look()) return std::nullopt;
  return controls_->apply(job.setting);
}

void Slot::run(JobPointer job) {
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

Slot::Finished Slot::take(Ran ran) {
  Finished finished{std::exchange(job_, nullptr), std::move(ran.measurement), false};
  finished.job->ours += std::max(0.0, seat_.since_asked() - ran.seconds);
  has_reference_ = ran.has_reference;
  if (looking_ && usable(finished.measurement.status)) {
    controls_->look(finished.measurement);
    finished.wanted_again = true;
  } else if (controls_ && !looking_ && !finished.job->reference_only && !finished.job->request.resources_only) {
    finished.wanted_again =
        controls_->judge(finished.job->setting, finished.measurement, std::exchange(finished.job->again, true));
  }
  if (!ran.healthy) seat_.clear();
  return finished;
}

std::optional<Slot::Finished> Slot::take(const Lost& lost) {
  if (!job_) return std::nullopt;
  Measurement failed =
      lost.why == Lost::Why::late
          ? failed_measurement(Status::timeout,
                               fmt::format("stopped after {:g} s on the device (--time-limit)", time_limit_))
          : failed_measurement(Status::runtime_error, lost.in_words("the kernel's process"));
  return Finished{std::exchange(job_, nullptr), std::move(failed), false};
}

void Slot::cancel() {
  if (job_) seat_.clear();
  job_.reset();
}

}  // namespace ergotune
