// Launches whose times on the device are not known yet.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "capture/inject/kernel_log.hpp"

namespace ergotune::inject {

/// `Mark` is what a launch is timed by: an event, or two.
template <class Mark>
class PendingTimes {
 public:
  struct Pending {
    Mark mark;
    std::shared_ptr<KernelLog::Entry> entry;
    bool first;  ///< KernelLog::add_time()
  };
  /// How many there are now.
  std::size_t add(Mark mark, std::shared_ptr<KernelLog::Entry> entry, bool first = false) {
    const std::lock_guard lock(mutex_);
    pending_.push_back({mark, std::move(entry), first});
    return pending_.size();
  }
  /// `take` returns the nanoseconds of each launch that `has_ended`, or 0, and releases its mark.
  void collect(auto&& has_ended, auto&& take) {
    std::vector<Pending> ended;
    {
      const std::lock_guard lock(mutex_);
      std::vector<Pending> left;
      for (Pending& one : pending_) (has_ended(one.mark) ? ended : left).push_back(std::move(one));
      pending_ = std::move(left);
    }
    for (const Pending& one : ended)
      if (const auto nanoseconds = static_cast<std::uint64_t>(take(one.mark)))
        KernelLog::get().add_time(*one.entry, nanoseconds, one.first);
    if (!ended.empty()) KernelLog::get().report(false);
  }

 private:
  std::mutex mutex_;
  std::vector<Pending> pending_;
};

}  // namespace ergotune::inject
