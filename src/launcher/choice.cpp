// Chooses the configuration of a launch.
#include <fmt/format.h>

#include "base/process/environment.hpp"
#include "ergotune/error.hpp"
#include "kernel/configure.hpp"
#include "kernel/wisdom_key.hpp"
#include "launcher/tuned_kernel.hpp"

namespace ergotune::launcher {

std::string TunedKernel::missing_wisdom() const {
  if (!settings_.wisdom_in_environment || settings_.online > 0) return {};  // online tuning makes the folder
  std::string missing;
  std::error_code error;
  for (const auto& folder : settings_.wisdom)
    if (!std::filesystem::exists(folder, error)) missing += (missing.empty() ? "" : ", ") + folder.string();
  return missing.empty() ? missing : "this folder of ERGOTUNE_WISDOM does not exist: " + missing;
}

std::shared_ptr<const std::vector<WisdomRecord>> TunedKernel::read_all_wisdom() const {
  auto records = std::make_shared<std::vector<WisdomRecord>>();
  if (const std::string missing = missing_wisdom(); !missing.empty()) warn_once(missing);
  for (const auto& folder : settings_.wisdom) {
    const auto wisdom = read_wisdom(wisdom_file(folder, name_));
    if (!wisdom) continue;
    for (const std::string& warning : wisdom->warnings) warn_once(warning);
    records->insert(records->end(), wisdom->records.begin(), wisdom->records.end());
  }
  return records;
}

void TunedKernel::reload() {
  {
    const std::lock_guard lock(mutex_);
    reported_.clear();
  }
  auto fresh = read_all_wisdom();
  std::vector<Site*> sites;
  {
    const std::lock_guard lock(mutex_);
    wisdom_ = std::move(fresh);
    for (auto& [place, site] : sites_) sites.push_back(site.get());
  }
  for (Site* site : sites) {
    const std::lock_guard knowing(site->mutex);
    site->failed.clear();
  }
  table_.forget_decisions();
}

void TunedKernel::warn_once(const std::string& message) const {
  {
    const std::lock_guard lock(mutex_);
    if (!reported_.insert(message).second) return;
  }
  warn(message);
}

std::string TunedKernel::refusal(Site& site, const Constants& constants, const WisdomRecord& record) const {
  try {
    const Configuration values = launchable_configuration(problem_, *kernel_, constants, record);
    const std::lock_guard knowing(site.mutex);
    const auto failed = site.failed.find(values_text(values));
    return failed == site.failed.end() ? std::string() : "it failed here: " + failed->second;
  } catch (const UserError& error) {
    return error.message();
  }
}

std::unique_ptr<Decision> TunedKernel::choose(Site& site, const Constants& constants) const {
  std::shared_ptr<const std::vector<WisdomRecord>> wisdom;
  {
    const std::lock_guard lock(mutex_);
    wisdom = wisdom_;
  }
  WisdomRequest request;
  const std::string pretended = environment_variable("ERGOTUNE_DEVICE_NAME");
  request.device = pretended.empty() ? wisdom_device(site.info) : wisdom_device(pretended, site.info.backend, {});
  request.problem_size = problem_size(problem_, *kernel_, constants);
  request.source_hash = source_hash(problem_, *kernel_, settings_.backend, constants);
  request.objective = settings_.objective;
  request.refuse = [&](const WisdomRecord& record) { return refusal(site, constants, record); };
  const WisdomChoice choice = select_wisdom(*wisdom, request);
  if (choice.stale > 0)
    warn_once(
        fmt::format("{} of {} wisdom records are stale, the source has changed since they were tuned, and are not used",
                    choice.stale, wisdom->size()));
  if (!choice.record) {
    if (choice.refused > 0) warn_once(choice.reason);
    const std::string missing = missing_wisdom();
    return choose_default(constants, choice.reason + (missing.empty() ? "" : "; " + missing));
  }
  auto decision = std::make_unique<Decision>();
  decision->configuration = wisdom_configuration(problem_, constants, *choice.record);
  decision->execution = choice.record->execution;
  decision->clock_latency = quantity_of(*choice.record, "clock_latency");
  if (choice.match == WisdomMatch::exact) decision->seconds = quantity_of(*choice.record, "time");
  decision->reason = choice.reason;
  decision->match = to_string(choice.match);
  decision->distance = choice.distance;
  decision->is_default = false;
  return decision;
}

std::unique_ptr<Decision> TunedKernel::choose_default(const Constants& constants, const std::string& reason) const {
  auto decision = std::make_unique<Decision>();
  decision->reason = reason;
  decision->match = to_string(WisdomMatch::none);
  decision->configuration = default_configuration(problem_, constants);
  return decision;
}

}  // namespace ergotune::launcher
