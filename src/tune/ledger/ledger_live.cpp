// The part of the ledger that publishes the session to web pages and carries out their requests.
#include "base/clock.hpp"
#include "tune/ledger/ledger.hpp"
#include "tune/ledger/live_session.hpp"

namespace ergotune {

bool Ledger::held() {
  const std::uint32_t requested = options_.live ? options_.live->requested() : 0;
  if (requested & kStopAfterCurrent) {
    const std::lock_guard lock(mutex_);
    if (!last_) {
      last_.emplace();
      for (const auto& [id, pending] : pending_)
        if (pending.noted) last_->insert(id);
    }
    std::erase_if(*last_, [&](std::uint64_t id) { return !pending_.contains(id); });
    stopped_ = last_->empty();
  }
  return (requested & (kStopAfterCurrent | kPause)) != 0;
}

bool Ledger::take_confirm_request() const {
  if (!options_.live || !(options_.live->requested() & kConfirmNow)) return false;
  options_.live->take_back(kConfirmNow);
  return true;
}

void Ledger::tell(const SessionProgress& progress) {
  if (options_.live) options_.live->tell(progress);
}

void Ledger::show(bool held) {
  if (!options_.live || !options_.live->due()) return;
  LiveSession::Now now;
  now.phase = phase_;
  now.stage = stage_;
  now.evaluated = evaluated_;
  now.known = resumed_;
  const std::lock_guard lock(mutex_);
  now.under_way = pending_.size();
  for (const auto& [device, id] : on_device_) {
    const auto pending = pending_.find(id);
    if (pending == pending_.end() || !pending->second.noted) continue;
    now.slots.push_back({device, describe(space_.parameters(), pending->second.configuration), pending->second.since});
  }
  const bool stopping = options_.live->requested() & kStopAfterCurrent;
  now.state = !held ? "running" : stopping ? "stopping" : pending_.empty() ? "paused" : "pausing";
  options_.live->show(now);
}

}  // namespace ergotune
