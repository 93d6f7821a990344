// Hardware counters of NVIDIA's GPUs by the names that papers use (nvprof's), and what each is made of: metrics of the
// chip as CUPTI names them. What follows from a name alone; what a chip has is counters/cupti_host.hpp's matter.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

/// A counter is factor * (sum of weight * metric) / divisor; without a divisor, of the sum alone.
struct CounterTerm {
  double weight = 0;
  std::string_view metric;
};
struct CounterInfo {
  std::string_view name;
  std::string_view unit;  ///< SI; empty for counts and ratios
  std::string_view meaning;
  double factor = 1;
  CounterTerm terms[3] = {};
  std::string_view divisor = {};
  /// One of the twenty that are counted by default; they fit into two passes.
  bool usual = false;
};

/// All of them. The equivalents are those of CUPTI's guide ("metrics mapping table"), and our own where that has none.
std::span<const CounterInfo> counter_names();
/// nullptr for a name that is none of ours.
const CounterInfo* counter_info(std::string_view name);
/// The names of the usual twenty.
std::vector<std::string> usual_counters();

/// What processors count, by the observer "perf".
struct PerfCounterInfo {
  std::string_view name, unit, meaning;
  bool hardware = true;  ///< else the kernel of the system counts it, on any machine
};
std::span<const PerfCounterInfo> perf_counter_names();

/// True for what looks like a chip's own metric: "dram__bytes_read.sum".
bool is_chip_metric(std::string_view name);
/// The metrics that a counter, or a chip's metric, is made of.
std::vector<std::string> metrics_behind(const std::string& counter);
/// The unit of a counter or of a chip's metric, as far as its name tells: "B", "B/s", "s"; empty for counts and where
/// unknown. A chip's times come in ns and its percentages as 0 to 100, as CUPTI gives them.
std::string unit_of_counter(std::string_view name);
/// What a counter is worth, from the values of metrics_behind() in their order. NaN where the divisor is 0.
double counter_value(const std::string& counter, std::span<const double> metrics);

}  // namespace ergotune
