// Timed rounds of a workload.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "device/device.hpp"
#include "measure/device_checksum.hpp"
#include "measure/runner.hpp"
#include "measure/timing/estimate.hpp"
#include "measure/timing/workload.hpp"

namespace ergotune {

/// Markers are made once and used again.
class MarkerPool {
 public:
  explicit MarkerPool(Device& device) : device_(device) {}
  Marker& operator[](std::size_t i);

 private:
  Device& device_;
  std::vector<std::unique_ptr<Marker>> markers_;
};

struct TimingResult {
  std::vector<double> samples;  ///< s per round
  TimeEstimate estimate;
  std::size_t launches_per_sample = 1;
  double overhead = 0;  ///< s per sample that the events and the beginning of the launches take: left out of samples
  bool converged = false;
  /// Racing: stopped because its interval lies above give_up_above.
  bool gave_up = false;
};

/// What a repetition is wrapped in where observers watch: before and after its launches are queued, after
/// they ended.
struct RepetitionHooks {
  std::function<void()> before_start, after_start, after_finish;
};

class Timer {
 public:
  /// With `sweeps` the cache is emptied by reading: nothing is left to be written back while a sample runs.
  Timer(Device& device, const MeasureOptions& options, DeviceChecksum* sweeps = nullptr)
      : device_(device), options_(options), markers_(device), sweeps_(sweeps) {}

  /// Device seconds of one round, waiting for it.
  double once(Workload& workload);
  /// Samples until the interval is narrow enough, the caps are reached, or it cannot win any more. `expected`
  /// is what a round takes as far as known. `between` is called (with the queue empty) before each batch of
  /// samples. Where the device has graphs, a round takes what it takes within one.
  TimingResult measure(Workload& workload, double expected, double give_up_above, const std::function<void()>& between,
                       const RepetitionHooks* hooks);

  /// Drives everything else out of the last-level cache, queued with the launches. Nothing is left to be written back
  /// where the device can sweep().
  void flush();
  /// The same by reading alone, which leaves nothing to be written back; false where the device cannot.
  bool sweep();

 private:
  Buffer& flush_buffer();
  /// A flush that leaves the cache full of what is to be written back, as a launch finds it after other kernels; it is
  /// what triton.testing.do_bench and nvbench do before each launch.
  void overwrite();
  /// What a sample takes beyond its rounds.
  struct Overhead {
    double value = 0, error = 0;  ///< s; standard error
    double sample = 1e300;        ///< asked with samples of so many s
  };
  const Overhead& overhead(Workload& workload, double expected, std::size_t launches, bool watched,
                           const std::function<void()>& between);
  double beyond_pitch(Workload& workload, double expected, std::size_t launches, bool watched);
  void unobserved(Workload& workload, std::size_t samples, std::size_t launches, std::vector<double>& out);
  void cold(Workload& workload, std::size_t samples, std::vector<double>& out);
  void observed(Workload& workload, std::size_t samples, std::size_t launches, const RepetitionHooks& hooks,
                std::vector<double>& out);

  Device& device_;
  const MeasureOptions& options_;
  MarkerPool markers_;
  DeviceChecksum* sweeps_;
  /// Queued behind others and (watched) by themselves; of single launches and of graphs.
  Overhead overheads_[2][2];
  bool leads_in_ = false;  ///< samples are preceded by one that does not count
  std::unique_ptr<Buffer> flush_;
  unsigned char flush_byte_ = 0;
};

}  // namespace ergotune
