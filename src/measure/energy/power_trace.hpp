// Power, clocks, temperature and throttle reasons over time, around and during the launches of one configuration, and
// how long they take to settle (Going Green, Figure 2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ergotune/error.hpp"

namespace ergotune {

/// One quantity; times in s from the first launch, negative before it.
struct TraceSeries {
  std::string name;  ///< a sensor's id for powers (W), else "core_clock_mhz", "memory_clock_mhz", "temperature_c",
                     ///< "core_voltage_v"
  std::vector<double> time, value;
};

struct PowerTrace {
  std::vector<TraceSeries> power;
  std::vector<TraceSeries> gpu;
  /// Why the clocks were what they were, as spans of time.
  struct Reason {
    std::string name;
    double from = 0, to = 0;
  };
  std::vector<Reason> reasons;
  /// s from the first launch to the end of the last.
  double load_seconds = 0;
  std::uint64_t launches = 0;

  const TraceSeries* find(std::string_view name) const;
};

/// How a series answers the load. What a sensor shows includes its own window and lag.
struct Settling {
  double before = 0;  ///< mean of the second half of what was seen before the load
  double final = 0;   ///< mean of the last third of the load
  double band = 0;    ///< 2 % of final, or three times the scatter of the last third where that is more
  /// s from the first launch after which the series stays within the band; nullopt where it does not before the last
  /// third.
  std::optional<double> seconds;
  double most = 0;   ///< largest value under load
  double drift = 0;  ///< change per second over the last third, where it is more than its noise; else 0
};
/// nullopt where the load has fewer than six values.
std::optional<Settling> settling_of(const TraceSeries& series, double load_seconds);

/// "time_s,series,value" and one line per value; reasons have the value 1 where they begin and 0 where they end.
std::string to_csv(const PowerTrace& trace);
/// Throws UserError, at `place` with its line, for what to_csv() has not written.
PowerTrace trace_from_csv(const std::string& text, SourcePlace place);

}  // namespace ergotune
