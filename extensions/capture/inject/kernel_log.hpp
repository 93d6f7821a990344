// The kernels that a program launches: how often, for how long, and whether one of their launches has been captured.
// Kernels are the same when name, source and options are.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/messages.hpp"

namespace ergotune::inject {

struct LaunchShape {
  std::size_t dimensions = 1;
  std::array<std::size_t, 3> global{1, 1, 1}, block{1, 1, 1};
  bool block_is_open = false;
};
/// "1024x768 in blocks of 16x16".
std::string description_of(const LaunchShape& shape);

/// The clock that a kernel was tuned at, while the command holds one for all kernels; 0: none, or nothing is held.
struct KernelClock {
  double mhz = 0, seconds = 0;         ///< of the kernel, and its time where it is known
  double common_mhz = 0, latency = 0;  ///< the clock for all; how long a change takes, s
};

/// What the command puts in place of a launch.
struct Answer {
  /// Source with its options (OpenCL), or compiled code with the function's attributes ("9=50 11=2").
  std::string description, code, options, function;
  LaunchShape shape;
  std::size_t shared_bytes = 0;
  double absolute_tolerance = 0, relative_tolerance = 0;
  /// Element types of the arguments' buffers ("float32"); empty where none is known.
  std::vector<std::string> types;
  bool use = false;   ///< otherwise the program's own launch stays, and only the clock is known
  KernelClock clock;  ///< of either
};
/// Returns nullopt if the program's own launch stays and no clock is tuned for it.
std::optional<Answer> ask_for_launch(const std::string& kernel, const std::string& source, const std::string& options,
                                     const std::string& device, const LaunchShape& shape, std::size_t shared_bytes);

class KernelLog {
 public:
  struct Entry {
    std::size_t number = 0;
    std::string name, hash, options;
    /// Other names that a user may call it by.
    std::vector<std::string> also;
    std::atomic<std::uint64_t> launches{0}, timed{0}, nanoseconds{0};
    /// Of the first launch alone, where loading its code counts, too: only used where there is no other.
    std::atomic<std::uint64_t> first_nanoseconds{0};
    /// Set once: by the launch that is captured, or that cannot be.
    std::atomic<bool> settled{false};
    std::string first_shape, arguments;
    std::string refusal;
    bool reported = false;
    std::uint64_t reported_launches = 0, reported_timed = 0;
  };

  /// The process's own; lives for ever.
  static KernelLog& get();

  std::shared_ptr<Entry> entry(const std::string& name, const std::string& source, const std::string& options);
  /// Counts one; its number from 0 on.
  std::uint64_t count(Entry& entry, const LaunchShape& shape, const std::string& arguments);
  void add_time(Entry& entry, std::uint64_t nanoseconds, bool first = false);
  void refuse(Entry& entry, const std::string& why);
  /// Whether this launch is the one to capture; says yes once for a kernel, and once in all where the user names one.
  bool claims(Entry& entry, std::uint64_t launch);
  /// The claimed launch has run: `finish` writes its capture into a folder, and returns what its user should know.
  /// False, with a refusal, where it threw.
  bool keep(Entry& entry, const std::function<std::vector<std::string>(const std::string&)>& finish);
  /// The claimed launch was not captured after all, through no fault of the kernel: the next one may be.
  void unclaim(Entry& entry);
  /// Another kernel that matches may be captured in its place.
  void unclaim_all() { done_ = false; }
  /// Tells the command what is new; not more often than ten times a second unless `now`.
  void report(bool now);

 private:
  KernelLog() = default;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;
  std::atomic<bool> done_{false};
  std::atomic<std::int64_t> next_report_{0};
};

/// Launches whose times on the device are not known yet. `Mark` is what a launch is timed by: an event, or two.
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
