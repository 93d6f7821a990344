// Power, clocks, temperature and throttle reasons over time, before, during and after the launches of one
// configuration, and the time that they take to settle (Going Green, Figure 2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ergotune/error.hpp"

namespace ergotune {

/// A quantity over time; times in s relative to the first launch, negative before it.
struct TraceSeries {
  std::string name;  ///< a sensor's id for powers (W), else "core_clock_mhz", "memory_clock_mhz", "temperature_c",
                     ///< "core_voltage_v"
  std::vector<double> time, value;
};

struct PowerTrace {
  std::vector<TraceSeries> power;
  std::vector<TraceSeries> gpu;
  /// A throttle reason and the span of time for which it applied.
  struct Reason {
    std::string name;
    double from = 0, to = 0;
  };
  std::vector<Reason> reasons;
  /// s from the beginning of the first launch to the end of the last.
  double load_seconds = 0;
  std::uint64_t launches = 0;

  const TraceSeries* find(std::string_view name) const;
};

/// Response of a series to the load. It includes the sensor's own window and lag.
struct Settling {
  double before = 0;  ///< mean over the second half of the time before the load
  double final = 0;   ///< mean over the last third of the load
  double band = 0;    ///< 2 % of `final`, or three times the scatter of the last third if that is larger
  /// s from the first launch after which the series stays within `band` of `final`; nullopt if that is only in the last
  /// third.
  std::optional<double> seconds;
  double most = 0;   ///< largest value during the load
  double drift = 0;  ///< change per second over the last third if it exceeds the noise; else 0
};
/// Returns nullopt if there are fewer than six values during the load.
std::optional<Settling> settling_of(const TraceSeries& series, double load_seconds);

/// Returns "time_s,series,value" and one line per value; a throttle reason has the value 1 at its beginning and 0 at
/// its end.
std::string to_csv(const PowerTrace& trace);
/// Parses the output of to_csv(). Throws UserError for other text, at `place` with the number of the line.
PowerTrace trace_from_csv(const std::string& text, SourcePlace place);

}  // namespace ergotune
