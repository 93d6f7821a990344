// Noise made by arithmetic alone, the same on every machine, and sensors of a test.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "measure/energy/energy.hpp"

namespace ergotune {

/// The i-th of a sequence of numbers from -0.5 to 0.5 that look like noise.
inline double noise(std::uint32_t i) {
  std::uint32_t x = i * 2654435761u + 104729u;
  x ^= x >> 15;
  x *= 2246822519u;
  x ^= x >> 13;
  return static_cast<double>(x) / 4294967296.0 - 0.5;
}

/// Equal to a part in a million where nothing else is said.
inline void expect_kept(const std::vector<double>& now, const std::vector<double>& kept, double tolerance = 1e-6) {
  ASSERT_EQ(now.size(), kept.size()) << fmt::format("now: {{{:.10g}}}", fmt::join(now, ", "));
  for (std::size_t i = 0; i < now.size(); ++i)
    if (now[i] != kept[i]) {
      EXPECT_NEAR(now[i], kept[i], tolerance * std::abs(kept[i]) + 1e-12) << "the number at " << i;
    }
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
