// Keeps a device busy with rounds of a workload, with marks along the way.
#pragma once

#include <array>
#include <cstddef>

#include "device/device.hpp"
#include "ergotune/observer.hpp"
#include "measure/timing/timing.hpp"
#include "measure/timing/workload.hpp"

namespace ergotune {

/// A stream under way. The queue never runs empty between marks as long as a chunk follows each mark that has
/// passed: two are always ahead of the one that is waited for. A host that is busy with other things may come too late
/// for that; then the device idled, and a mark of no launches closes the gap, so that it counts as a pause.
class LaunchStreamer {
 public:
  /// Chunks of about `mark_period` s; a round takes `round_seconds`.
  LaunchStreamer(Device& device, Workload& workload, double mark_period, double round_seconds);

  /// Queues the first mark and what keeps the queue filled.
  void begin();
  /// Waits for the next mark; false when none is awaited.
  bool next_mark();
  /// Queues rounds with a mark behind them.
  void launch_chunk();
  /// True when everything queued has passed.
  bool drained() const { return awaited_ == recorded_; }
  /// Leaves the device idle for `seconds`, then fills the queue again.
  void rest(double seconds);
  const LaunchStream& stream() const { return stream_; }

 private:
  static constexpr std::size_t kAhead = 2;
  // Markers go round in a ring, so that a long stream needs few of them; the mark before the oldest one
  // awaited is kept for the device time between the two.
  static constexpr std::size_t kRing = kAhead + 3;
  void record(std::size_t rounds);
  void fill();
  /// All that was queued has passed, on a device that runs it beside the host.
  bool ran_empty();

  Device& device_;
  Workload& workload_;
  MarkerPool markers_;
  std::size_t per_mark_;
  double mark_seconds_;
  LaunchStream stream_;
  std::array<std::size_t, kRing> launched_{};  ///< before each mark
  std::size_t recorded_ = 0, awaited_ = 0;
  double looked_ = 0;  ///< when the host last saw a mark not passed
  /// The device has been seen at work while the host went on: its queue can run empty.
  bool runs_beside_ = false;
};

}  // namespace ergotune
