// CUPTI's host side: the metrics of a chip, and the configuration image for counting them, which needs neither GPU nor
// driver (CUPTI 12.6 Update 2 to 13.1; later versions need a driver). And its Range Profiler on a device of this
// machine: the caller launches iterations, one per pass, each between begin_pass() and end_pass().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ergotune::cupti {

struct HostObject;

/// "GH100" for compute capability 90; empty if the architecture has no range profiler. Of several chips, the first that
/// was built, since their counters are equal.
std::string chip_of_architecture(int architecture);
/// Names of metrics before the dot: "dram__bytes_read". `kind`: 0 counters, 1 ratios, 2 throughputs.
std::vector<std::string> base_metrics(const std::string& chip, int kind);
/// CUPTI's description of a metric ("# of bytes read from DRAM"); empty if it is unknown.
std::string describe(const std::string& chip, const std::string& metric);

/// A set of metrics that are counted together.
class MetricSet {
 public:
  /// The metrics must be unique. `availability`: the device's own image of available counters, for chips newer than the
  /// library; empty: none. Throws UserError if the chip lacks a metric.
  MetricSet(const std::string& chip, std::vector<std::string> metrics, std::span<const std::uint8_t> availability = {});
  ~MetricSet();
  MetricSet(const MetricSet&) = delete;
  MetricSet& operator=(const MetricSet&) = delete;

  const std::vector<std::string>& metrics() const { return metrics_; }
  /// metrics() as C strings for CUPTI.
  const char** names() const { return names_.data(); }
  std::span<const std::uint8_t> image() const { return image_; }
  /// Number of launches needed to count all metrics.
  std::size_t passes() const { return passes_; }
  /// The values of the metrics, in their order, for a range in decoded data.
  std::vector<double> evaluate(std::span<const std::uint8_t> data, std::size_t range) const;

 private:
  HostObject* host_ = nullptr;
  std::vector<std::string> metrics_;
  mutable std::vector<const char*> names_;
  std::vector<std::uint8_t> image_;
  std::size_t passes_ = 0;
};

/// The metrics among these that the chip lacks.
std::vector<std::string> lacking(const std::string& chip, const std::vector<std::string>& metrics,
                                 std::span<const std::uint8_t> availability = {});

struct RangeObject;

/// A device whose context is current on this thread, checked for permission to count.
class ProfiledDevice {
 public:
  /// Throws UserError if CUPTI is missing, the device cannot be profiled, or the user may not profile it.
  explicit ProfiledDevice(int device);
  const std::string& chip() const { return chip_; }
  /// The image of the counters that the device offers.
  const std::vector<std::uint8_t>& availability() const { return availability_; }
  void* context() const { return context_; }

 private:
  std::string chip_;
  std::vector<std::uint8_t> availability_;
  void* context_ = nullptr;
};

/// Counts the iterations of one configuration. From the first pass until values() the GPU is profiled, which changes
/// its timing; no effect remains afterwards.
class CountedIterations {
 public:
  /// `one_launch`: the iteration is a single kernel launch, counted from its start to its end; otherwise the iteration
  /// is counted as a whole.
  CountedIterations(const ProfiledDevice& device, const MetricSet& set, bool one_launch);
  ~CountedIterations();
  CountedIterations(const CountedIterations&) = delete;
  CountedIterations& operator=(const CountedIterations&) = delete;

  void begin_pass();
  /// Call it when the iteration has finished.
  void end_pass();
  bool complete() const { return complete_; }
  /// The values of the metrics in the set's order. Throws Error if passes are missing or the device dropped counters.
  std::vector<double> values();

 private:
  void disable() noexcept;
  const MetricSet& set_;
  bool one_launch_;
  RangeObject* ranges_ = nullptr;
  std::vector<std::uint8_t> data_;
  bool started_ = false, complete_ = false;
};

}  // namespace ergotune::cupti
