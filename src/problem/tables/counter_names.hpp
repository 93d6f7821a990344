// Hardware counters of NVIDIA GPUs by the names used in papers (those of nvprof), and the CUPTI metrics from which each
// is computed. Which metrics a chip has is determined in counters/cupti.hpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

/// value = factor * (sum of weight * metric) / divisor; without a divisor, factor * sum.
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
  /// One of the twenty counters that are measured by default; they need two passes.
  bool usual = false;
};

/// All counters. The formulas are those of CUPTI's guide ("metrics mapping table"), and ergotune's own for counters
/// that the guide lacks.
std::span<const CounterInfo> counter_names();
/// Returns nullptr for an unknown name.
const CounterInfo* counter_info(std::string_view name);
/// The names of the twenty counters that are measured by default.
std::vector<std::string> usual_counters();

/// A counter of the observer "perf", which counts events of CPUs.
struct PerfCounterInfo {
  std::string_view name, unit, meaning;
  bool hardware = true;  ///< false: counted by the operating system's kernel, available on any machine
};
std::span<const PerfCounterInfo> perf_counter_names();

/// True for the form of a chip's own metric, such as "dram__bytes_read.sum".
bool is_chip_metric(std::string_view name);
/// Returns the metrics from which a counter is computed; for a chip's own metric, the metric itself.
std::vector<std::string> metrics_behind(const std::string& counter);
/// Returns the unit of a counter or of a chip's metric as far as its name determines it: "B", "B/s", "s"; empty for
/// counts and unknown units. CUPTI reports a chip's times in ns and percentages as 0 to 100; they are not converted.
std::string unit_of_counter(std::string_view name);
/// Computes a counter from the values of metrics_behind(), in the same order. NaN if the divisor is 0.
double counter_value(const std::string& counter, std::span<const double> metrics);

}  // namespace ergotune
