// Traces made by arithmetic alone, the same on every machine, and numbers that stay what they were: whoever judges a stored trace
// again gets what an earlier release said, unless a release says otherwise.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "ergotune/measure/energy.hpp"

namespace ergotune {

/// The i-th of a sequence of numbers from -0.5 to 0.5 that look like noise.
inline double noise(std::uint32_t i) {
  std::uint32_t x = i * 2654435761u + 104729u;
  x ^= x >> 15;
  x *= 2246822519u;
  x ^= x >> 13;
  return static_cast<double>(x) / 4294967296.0 - 0.5;
}

/// As they were, to a part in a million where nothing else is said.
inline void expect_kept(const std::vector<double>& now, const std::vector<double>& kept, double tolerance = 1e-6) {
  ASSERT_EQ(now.size(), kept.size()) << fmt::format("now: {{{:.10g}}}", fmt::join(now, ", "));
  for (std::size_t i = 0; i < now.size(); ++i)
    if (now[i] != kept[i]) {
      EXPECT_NEAR(now[i], kept[i], tolerance * std::abs(kept[i]) + 1e-12) << "the number at " << i;
    }
}

/// W at a time: a level that wanders and swings.
inline double test_power(double t) { return 300 + 25 * std::sin(2.3 * t) + 8 * std::sin(17 * t + 1); }
/// J since 0.
inline double test_energy(double t) { return 300 * t - 25 / 2.3 * (std::cos(2.3 * t) - 1) - 8.0 / 17 * (std::cos(17 * t + 1) - std::cos(1)); }

/// A sensor of this kind that looks at test_power every update_period s and is polled every `poll` s (0: it stamps its readings).
inline SensorTrace trace_of_test_power(SensorInfo info, double from, double to, double poll) {
  SensorTrace trace{std::move(info), {}, {}};
  trace.info.id = "test";
  const double step = poll > 0 ? poll : trace.info.update_period;
  double lagged = test_power(from);
  std::int64_t last = -1;
  double shown = 0;
  const auto count = static_cast<std::int64_t>(std::llround((to - from) / step));
  for (std::int64_t i = 0; i <= count; ++i) {
    const double t = from + static_cast<double>(i) * step;
    const auto tick = static_cast<std::int64_t>(std::floor(t / trace.info.update_period + 1e-9));
    if (tick != last) {
      const double at = static_cast<double>(tick) * trace.info.update_period - trace.info.lag;
      const double window = trace.info.window;
      lagged += (test_power(at) - lagged) * (window > 0 ? 1 - std::exp(-trace.info.update_period / window) : 1);
      const double random = noise(static_cast<std::uint32_t>(tick + 1000));
      shown = trace.info.kind == SensorKind::cumulative_energy  ? 5000 + test_energy(at) + random
              : trace.info.kind == SensorKind::windowed_power   ? (test_energy(at) - test_energy(at - window)) / window + 6 * random
              : trace.info.kind == SensorKind::exponential_power ? lagged + 0.2 * random
                                                                 : test_power(at) + 6 * random;
      last = tick;
    }
    trace.readings.push_back({t, shown});
  }
  return trace;
}

inline SensorInfo test_sensor(SensorKind kind, double update_period, double window = 0, double lag = 0) {
  SensorInfo info;
  info.kind = kind;
  info.update_period = update_period;
  info.window = window;
  info.lag = lag;
  return info;
}

}  // namespace ergotune
