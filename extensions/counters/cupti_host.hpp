// CUPTI's host side: what a chip can count, and the image that says what is to be counted. It needs neither GPU nor
// driver (CUPTI 12.6 Update 2 to 13.1; later ones want a driver).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ergotune::cupti {

struct HostObject;

/// "GH100" for compute capability 90; empty for one that has no range profiler. Of several chips the first that was
/// built: they count the same.
std::string chip_of_architecture(int architecture);
/// The metrics' names before the dot: "dram__bytes_read". Kind: 0 counters, 1 ratios, 2 throughputs.
std::vector<std::string> base_metrics(const std::string& chip, int kind);
/// What CUPTI says of a metric ("# of bytes read from DRAM"); empty for one that it does not know.
std::string describe(const std::string& chip, const std::string& metric);

/// Metrics that are counted together.
class MetricSet {
 public:
  /// Metrics that the chip has; each once. `availability`: what the device itself says of its counters, for chips newer
  /// than the library; empty: nothing. Throws UserError where the chip lacks one.
  MetricSet(const std::string& chip, std::vector<std::string> metrics, std::span<const std::uint8_t> availability = {});
  ~MetricSet();
  MetricSet(const MetricSet&) = delete;
  MetricSet& operator=(const MetricSet&) = delete;

  const std::vector<std::string>& metrics() const { return metrics_; }
  /// The same, as CUPTI takes them.
  const char** names() const { return names_.data(); }
  std::span<const std::uint8_t> image() const { return image_; }
  /// Launches that it takes to count them all.
  std::size_t passes() const { return passes_; }
  /// The metrics' values, in their order, of a range in decoded data.
  std::vector<double> evaluate(std::span<const std::uint8_t> data, std::size_t range) const;

 private:
  HostObject* host_ = nullptr;
  std::vector<std::string> metrics_;
  mutable std::vector<const char*> names_;
  std::vector<std::uint8_t> image_;
  std::size_t passes_ = 0;
};

/// Which of these the chip lacks.
std::vector<std::string> lacking(const std::string& chip, const std::vector<std::string>& metrics,
                                 std::span<const std::uint8_t> availability = {});

}  // namespace ergotune::cupti
