// Keeps a device busy with iterations of a workload, with marks at intervals.
#pragma once

#include <array>
#include <cstddef>

#include "device/device.hpp"
#include "ergotune/observer.hpp"
#include "measure/timing/timing.hpp"
#include "measure/timing/workload.hpp"

namespace ergotune {

/// A running stream. Two chunks are always queued ahead of the awaited mark, so that the queue never runs empty as long
/// as the caller queues a chunk after each mark. If the host is too late for that, the device idles; then a mark
/// without launches is added at the end of the gap, so that the gap counts as a pause.
class LaunchStreamer {
 public:
  /// Chunks last about `mark_period` s; an iteration takes about `round_seconds`.
  LaunchStreamer(Device& device, Workload& workload, double mark_period, double round_seconds);

  /// Queues the first mark and the chunks that fill the queue.
  void begin();
  /// Waits for the next mark; returns false if none is outstanding.
  bool next_mark();
  /// Queues a chunk of iterations, followed by a mark.
  void launch_chunk();
  /// True if the device has passed all queued marks.
  bool drained() const { return awaited_ == recorded_; }
  /// Leaves the device idle for `seconds`, then fills the queue again.
  void rest(double seconds);
  const LaunchStream& stream() const { return stream_; }

 private:
  static constexpr std::size_t kAhead = 2;
  // Markers are reused in a ring, so that a long stream needs few of them; the mark before the oldest awaited one is
  // kept to compute the device time between the two.
  static constexpr std::size_t kRing = kAhead + 3;
  void record(std::size_t rounds);
  void fill();
  /// True if all queued work has finished, on a device that runs asynchronously to the host.
  bool ran_empty();

  Device& device_;
  Workload& workload_;
  MarkerPool markers_;
  std::size_t per_mark_;
  double mark_seconds_;
  LaunchStream stream_;
  std::array<std::size_t, kRing> launched_{};  ///< launches before each mark
  std::size_t recorded_ = 0, awaited_ = 0;
  double looked_ = 0;  ///< when the host last saw an outstanding mark
  /// True once the device was seen working while the host continued, so that its queue can run empty.
  bool is_asynchronous_ = false;
};

}  // namespace ergotune
