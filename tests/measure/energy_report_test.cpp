// What is told of a measurement of energy beside the number itself: at a power limit, of a GPU that warms, and when
// it has settled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>

#include "base/statistics.hpp"
#include "measure/energy/energy.hpp"
#include "measure/energy/energy_plausible.hpp"

namespace ergotune {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

/// The i-th of a sequence of numbers from -0.5 to 0.5 that look like noise.
double noise(std::uint32_t i) {
  std::uint32_t x = i * 2654435761u + 104729u;
  x ^= x >> 15;
  x *= 2246822519u;
  x ^= x >> 13;
  return static_cast<double>(x) / 4294967296.0 - 0.5;
}

SensorInfo test_sensor(SensorKind kind, double update_period, double window = 0, double lag = 0) {
  SensorInfo info;
  info.kind = kind;
  info.update_period = update_period;
  info.window = window;
  info.lag = lag;
  return info;
}

/// 3 s of 1000 launches a second at about 100 W by a sensor that looks every 20 ms; marks every 10 ms.
EnergyTrace steady(double relative_noise = 0.01) {
  EnergyTrace trace;
  for (int i = 0; i <= 300; ++i)
    trace.stream.marks.push_back({0.01 * i, 0, 0.01 * i, static_cast<std::uint64_t>(10 * i)});
  SensorTrace sensor{test_sensor(SensorKind::windowed_power, 0.02, 0.02), {}, {}};
  sensor.info.id = "first";
  for (int i = 1; i <= 150; ++i)
    sensor.readings.push_back({0.02 * i, 100 * (1 + relative_noise * noise(static_cast<std::uint32_t>(i)))});
  trace.sensors.push_back(sensor);
  return trace;
}

void look(EnergyTrace& trace, double when, const std::function<void(DeviceState&)>& change) {
  DeviceState state;
  change(state);
  trace.gpu.emplace_back(when, state);
}

TEST(EnergyReported, OfIdlePowerAndTemperatureIsWhatTheyTakeInALaunch) {
  EnergyTrace trace = steady();
  look(trace, 0.5, [](DeviceState& state) { state.temperature_c = 60; });
  look(trace, 2.5, [](DeviceState& state) { state.temperature_c = 62; });
  EnergyOptions options;
  const EnergyResult plain = estimate_energy(trace, options);
  EXPECT_EQ(plain.quantities.count("idle_subtracted_energy") + plain.quantities.count("corrected_energy"), 0u);
  EXPECT_THAT(plain.warnings, IsEmpty());
  options.idle_power = 40;
  options.idle_power_error = 4;
  options.correction = EnergyOptions::TemperatureCorrection{51, 0.5, 0.2};
  const EnergyResult result = estimate_energy(trace, options);
  const Quantity &energy = result.quantities.at("energy"), &idle = result.quantities.at("idle_subtracted_energy"),
                 &corrected = result.quantities.at("corrected_energy");
  EXPECT_NEAR(idle.value, energy.value - 40 * 1e-3, 1e-9);
  EXPECT_NEAR(idle.standard_error, std::hypot(energy.standard_error, 4 * 1e-3), 1e-9);
  EXPECT_THAT(idle.method, HasSubstr("less 40 W of idle power"));
  EXPECT_NEAR(corrected.value, energy.value - 0.5 * 10 * 1e-3, 1e-9);
  EXPECT_NEAR(corrected.standard_error, std::hypot(energy.standard_error, 0.2 * 10 * 1e-3), 1e-9);
  EXPECT_THAT(corrected.method, HasSubstr("at 51 °C by 0.5 W per °C"));
}

TEST(EnergyReported, ADriftIsSaidAndHalfOfItBelongsToTheInterval) {
  const auto drifting = [](double by) {
    EnergyTrace trace = steady(0);
    for (std::size_t i = 0; i < trace.sensors[0].readings.size(); ++i)
      trace.sensors[0].readings[i].value *= 1 + by * (trace.sensors[0].readings[i].time - 1.5) / 3;
    return estimate_energy(trace, {});
  };
  EXPECT_THAT(drifting(0.019).warnings, IsEmpty());
  EXPECT_THAT(drifting(0.05).warnings, Contains("energy per launch drifted by 5.0 % while it was measured"));
  EXPECT_THAT(drifting(-0.05).warnings, Contains("energy per launch drifted by -5.0 % while it was measured"));
  const EnergyResult found = drifting(0.05);
  EXPECT_GE(found.scatter_half_width, 0.5 * found.drift * found.quantities.at("energy").value);
}

}  // namespace
}  // namespace ergotune
