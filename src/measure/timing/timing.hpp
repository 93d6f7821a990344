// Measures the device time of iterations of a workload, and estimates their mean from samples.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "device/device.hpp"
#include "measure/device_checksum.hpp"
#include "measure/runner.hpp"
#include "measure/timing/workload.hpp"

namespace ergotune {

struct TimeEstimate {
  double value = 0;
  double standard_error = 0;
  /// Half-width of the two-sided 95 % confidence interval relative to the value; infinity for fewer than two samples.
  double relative_half_width = 0;
  std::size_t count = 0;
  double degrees = 0;  ///< degrees of freedom of the standard error: samples left after trimming, minus one
};

/// 20 % trimmed mean with the Winsorised standard error (Tukey and McLaughlin, 1963): if one sample in ten is disturbed
/// by the system, neither changes much. If neighbouring samples are correlated (significantly positive lag-1
/// autocorrelation r), the standard error is widened by sqrt((1 + r) / (1 - r)), since a slow drift of clocks and
/// temperature would otherwise lead to too narrow intervals.
TimeEstimate estimate_time(std::span<const double> samples);

/// True if one of three or four samples is an outlier. (A trimmed mean removes an outlier only from five samples on.)
bool has_outlier(std::span<const double> samples);

/// A growing list of reusable markers.
class MarkerPool {
 public:
  explicit MarkerPool(Device& device) : device_(device) {}
  Marker& operator[](std::size_t i);

 private:
  Device& device_;
  std::vector<std::unique_ptr<Marker>> markers_;
};

struct TimingResult {
  std::vector<double> samples;  ///< s per iteration
  TimeEstimate estimate;
  std::size_t launches_per_sample = 1;
  double overhead = 0;  ///< s per sample for events and the start of the launches; already subtracted from `samples`
  bool converged = false;
  /// Racing: the measurement ended early because its interval lies above give_up_above.
  bool gave_up = false;
};

/// Hooks of observers around a sample: before and after its launches are queued, and after they have finished.
struct RepetitionHooks {
  std::function<void()> before_start, after_start, after_finish;
};

/// How inputs that iterations change get their first contents back.
struct InputReset {
  std::function<void()> apply = {};  ///< queues it, as a launch; empty: iterations change none of their inputs
  /// A sample is one launch, preceded by a reset; otherwise there is a reset before each batch of samples only.
  bool before_each = false;
};

class Timer {
 public:
  /// If `sweeps` is given, the cache is emptied by reading, so that no data is written back during a sample.
  Timer(Device& device, const MeasureOptions& options, DeviceChecksum* sweeps = nullptr)
      : device_(device), options_(options), markers_(device), sweeps_(sweeps) {}

  /// Returns the device time of one iteration in s; waits for it.
  double once(Workload& workload);
  /// Takes samples until the interval is narrow enough, a limit is reached, or the configuration cannot become the best
  /// any more. `expected`: approximate time of an iteration, s. On a device with graphs, iterations are measured within
  /// graphs.
  TimingResult measure(Workload& workload, double expected, double give_up_above, const InputReset& reset,
                       const RepetitionHooks* hooks);

  /// Drives everything else out of the last-level cache, queued with the launches. Nothing is left to be written back
  /// where the device can sweep().
  void flush();
  /// Like flush(), by reading only, so that no data needs to be written back; returns false if the device cannot.
  bool sweep();

 private:
  Buffer& flush_buffer();
  /// A flush that leaves the cache full of what is to be written back, as a launch finds it after other kernels; it is
  /// what triton.testing.do_bench and nvbench do before each launch.
  void overwrite();
  /// What a sample takes beyond its rounds.
  struct Overhead {
    double value = 0, error = 0;  ///< value and standard error, s
    double sample = 1e300;        ///< determined with samples of this length, s
  };
  const Overhead& overhead(Workload& workload, double expected, std::size_t launches, bool watched,
                           const InputReset& reset);
  /// s of one launch among those of a graph that was prepared.
  double within_graph(Workload& workload, std::size_t launches, const InputReset& reset);
  /// Adds to the error what the samples of one process do not show.
  void add_systematic(TimingResult& result, double overhead_error) const;
  double overhead_within_graph(Workload& workload, double expected, std::size_t launches, bool watched);
  void unobserved(Workload& workload, std::size_t samples, std::size_t launches, std::vector<double>& out);
  /// What each sample of one launch is preceded by; empty: nothing.
  std::function<void()> preparation(const InputReset& reset);
  void prepared(Workload& workload, std::size_t samples, const std::function<void()>& prepare,
                std::vector<double>& out);
  void observed(Workload& workload, std::size_t samples, std::size_t launches, const RepetitionHooks& hooks,
                const std::function<void()>& prepare, std::vector<double>& out);

  Device& device_;
  const MeasureOptions& options_;
  MarkerPool markers_;
  DeviceChecksum* sweeps_;
  /// Indices: samples queued behind others or (observed) by themselves; single launches or graphs.
  Overhead overheads_[2][2];
  bool untimed_first_sample_ = false;  ///< each sample is preceded by an untimed one
  std::unique_ptr<Buffer> flush_;
  unsigned char flush_byte_ = 0;
};

}  // namespace ergotune
