#include "power/guardian/guardian_report.hpp"

#include <mutex>
#include <utility>

namespace ergotune {
namespace {

std::mutex failed_mutex;
std::vector<RestoreReport> failed_restores;

}  // namespace

void note_failed_restore(const RestoreReport& report) {
  const std::lock_guard hold(failed_mutex);
  failed_restores.push_back(report);
}

std::vector<RestoreReport> take_failed_restores() {
  const std::lock_guard hold(failed_mutex);
  return std::exchange(failed_restores, {});
}

std::string description_of(const RestoreReport& report) {
  std::string words = report.summary;
  for (const auto& outcome : report.outcomes)
    if (!outcome.result.ok()) words += "\n  " + (outcome.words.empty() ? outcome.result.message : outcome.words);
  return words;
}

}  // namespace ergotune
