// CUPTI's host side: the metrics of a chip, and the configuration image for counting them. Needs neither GPU nor driver
// (CUPTI 12.6 Update 2 to 13.1; later versions need a driver).
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

}  // namespace ergotune::cupti
