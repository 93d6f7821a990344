#include "ergotune/evaluate/live.hpp"

#include <fmt/format.h>

#include "base/hash.hpp"
#include "evaluate/live_pump.hpp"
#include "problem/includes.hpp"

namespace ergotune {

LiveOptions LiveOptions::from(const TuneDefaults& defaults) {
  LiveOptions options;
  options.measure = MeasureOptions::from(defaults);
  if (defaults.device) options.device = *defaults.device;
  if (defaults.jobs) options.jobs = *defaults.jobs;
  if (defaults.time_limit) options.time_limit = *defaults.time_limit;
  if (defaults.energy_budget) options.energy_seconds = *defaults.energy_budget;
  options.sensors = defaults.sensors;
  return options;
}

std::string hash_of_included_files(const Problem& problem) {
  std::string all;
  const auto add = [&](const Kernel& kernel) {
    for (const KernelSource& source : kernel.sources) {
      std::vector<std::string> folders;
      if (!source.file.empty()) folders.push_back(source.file.parent_path().string());
      for (const auto& folder : source.include_folders) folders.push_back(folder.string());
      all += hash_of_includes(source.text, folders);
    }
  };
  add(problem.kernel());
  if (problem.verification.reference) add(*problem.verification.reference);
  return all.empty() ? all : content_hash(all);
}

struct LiveEvaluator::State {
  LivePump pump;
};

LiveEvaluator::LiveEvaluator(const Problem& problem, LiveOptions options)
    : state_(new State{{problem, std::move(options)}}) {}
LiveEvaluator::~LiveEvaluator() = default;

const DeviceInfo& LiveEvaluator::device() const { return state_->pump.device(); }
const std::string& LiveEvaluator::compiler_identity() const { return state_->pump.compiler_identity(); }
std::vector<std::string> LiveEvaluator::notes() const { return state_->pump.notes(); }

bool LiveEvaluator::establish_reference(const std::vector<Configuration>& candidates) {
  for (const Configuration& candidate : candidates) {
    if (state_->pump.has_reference()) return true;
    EvaluationRequest request;
    request.id = ~std::uint64_t{0};
    request.configuration = candidate;
    state_->pump.submit(std::move(request), true);
    const auto answer = state_->pump.wait_for_reference(1e6);
    if (!answer) return false;
  }
  return state_->pump.has_reference();
}

std::string LiveEvaluator::description() const { return fmt::format("{} ({})", device().id, device().name); }

// Every compile worker busy, one configuration on the device, and one or two ready to follow it.
std::size_t LiveEvaluator::capacity() const {
  return device().is_cpu ? state_->pump.jobs() : state_->pump.jobs() + 3;
}

void LiveEvaluator::submit(EvaluationRequest request) { state_->pump.submit(std::move(request), false); }
std::optional<EvaluationResult> LiveEvaluator::wait(double seconds) { return state_->pump.wait(seconds); }
std::size_t LiveEvaluator::pending() const { return state_->pump.pending(); }
void LiveEvaluator::cancel() { state_->pump.cancel(); }
void LiveEvaluator::set_journal(RunJournal* journal) { state_->pump.set_journal(journal); }
int LiveEvaluator::runner_pid() const { return state_->pump.runner_pid(); }

}  // namespace ergotune
