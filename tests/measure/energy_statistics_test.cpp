// For every kind of sensor: the estimate is unbiased and its 95 % interval covers the truth as often as it
// claims. ERGOTUNE_ENERGY_RUNS sets the number of runs per sensor (200 is the acceptance; CI takes fewer).
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/statistics.hpp"
#include "energy_bench.hpp"

namespace ergotune {
namespace {

using Source = EnergyBench::Source;

struct Case {
  const char* name;
  const char* generation;
  std::function<void(EnergyBench&)> prepare;
  double budget = 1.0;
};

void use(EnergyBench& bench, Source source, SensorKind kind, const fake_nvml::PowerSensorModel& model) {
  bench.add(source, sensor_info("fake", kind, model.period,
                                kind == SensorKind::exponential_power ? model.tau : model.window, model.lag));
}

std::vector<Case> cases() {
  return {
      {"counter_100ms", "ampere",
       [](EnergyBench& b) { b.add(Source::counter, sensor_info("counter", SensorKind::cumulative_energy, 0.1, 0)); }},
      {"counter_with_lag", "ampere",
       [](EnergyBench& b) {
         b.gpu().counter.lag = 0.06;
         b.start();
         b.add(Source::counter, sensor_info("counter", SensorKind::cumulative_energy, 0.1, 0, 0.06));
       }},
      {"counter_sleeping_25_of_100ms", "ga100",
       [](EnergyBench& b) {
         b.add(Source::counter, sensor_info("counter", SensorKind::cumulative_energy, 0.1, 0.025));
       }},
      {"counter_1ms_coarse_step", "volta",
       [](EnergyBench& b) {  // RAPL-like
         b.gpu().counter.period = 0.001;
         b.gpu().counter.step = 0.015;
         b.start();
         b.add(Source::counter, sensor_info("counter", SensorKind::cumulative_energy, 0.001, 0, 0, 0.015));
       }},
      {"instant_25_of_100ms", "hopper",
       [](EnergyBench& b) { use(b, Source::instant, SensorKind::windowed_power, b.gpu().instant); }},
      {"instant_100_of_100ms", "ampere",
       [](EnergyBench& b) { use(b, Source::instant, SensorKind::windowed_power, b.gpu().instant); }},
      {"usage_10_of_20ms", "volta",
       [](EnergyBench& b) { use(b, Source::instant, SensorKind::windowed_power, b.gpu().usage); }},
      {"sample_buffer_20ms", "hopper",
       [](EnergyBench& b) { use(b, Source::samples, SensorKind::windowed_power, b.gpu().samples); }},
      {"average_1s", "ampere",
       [](EnergyBench& b) { use(b, Source::average, SensorKind::windowed_power, b.gpu().average); }, 2.5},
      {"exponential_830ms", "kepler",
       [](EnergyBench& b) { use(b, Source::instant, SensorKind::exponential_power, b.gpu().usage); }, 1.5},
      {"counter_and_samples", "hopper",
       [](EnergyBench& b) {
         b.add(Source::counter, sensor_info("counter", SensorKind::cumulative_energy, 0.1, 0));
         use(b, Source::samples, SensorKind::windowed_power, b.gpu().samples);
       }},
  };
}

int runs() {
  const char* given = std::getenv("ERGOTUNE_ENERGY_RUNS");
  return given ? std::max(20, std::atoi(given)) : 60;
}

class EnergyStatistics : public testing::TestWithParam<Case> {};

TEST_P(EnergyStatistics, IsUnbiasedAndCoversTheTruth) {
  const Case& c = GetParam();
  EnergyOptions options;
  std::vector<double> errors, widths, lengths;
  int covered = 0;
  const int n = runs();
  for (int run = 0; run < n; ++run) {
    auto measure = [&](double noise, EnergyResult* result, double* length) {
      EnergyBench bench(c.generation, static_cast<std::uint64_t>(run));
      bench.gpu().noise = noise;
      bench.start();
      c.prepare(bench);
      // Launches of 3 us to 30 ms, compute- and memory-bound, below the power cap.
      const double launch = 3e-6 * std::pow(10.0, 4.0 * ((run * 7) % 20) / 20.0);
      const double share = 0.1 + 0.8 * ((run * 3) % 10) / 10.0;
      bench.set_kernel(launch * share, launch * (1 - share), 0.2 + 0.4 * ((run * 11) % 16) / 16.0);
      bench.warm_up(3);
      const EnergyTrace trace = bench.run(options, c.budget);
      if (result) *result = estimate_energy(trace, options);
      const LaunchAxis axis(trace.stream);
      const TimeSpan span{trace.settled_at, axis.end()};
      if (length) *length = axis.end() - trace.stream.queued_at;
      return (fake_nvml::energy_at(bench.gpu(), span.to) - fake_nvml::energy_at(bench.gpu(), span.from)) /
             (axis.launches_at(span.to) - axis.launches_at(span.from));
    };
    EnergyResult result;
    double length = 0;
    measure(0.02, &result, &length);
    // The truth: what the same launches take on the same GPU without the noise.
    const double truth = measure(0, nullptr, nullptr);
    ASSERT_TRUE(result.quantities.contains("energy")) << run << ": " << result.message;
    const Quantity& energy = result.quantities.at("energy");
    errors.push_back(energy.value / truth - 1);
    widths.push_back(1.96 * energy.standard_error / truth);
    lengths.push_back(length);
    covered += std::abs(energy.value - truth) <= 1.96 * energy.standard_error;
  }
  const double coverage = static_cast<double>(covered) / n;
  std::printf(
      "%-30s bias %+.3f %%  median |error| %.3f %%  median half-width %.3f %%  coverage %.1f %%  %.2f s\n", c.name,
      100 * mean(errors),
      100 *
          [&] {
            auto a = errors;
            for (auto& e : a) e = std::abs(e);
            return median(a);
          }(),
      100 * median(widths), 100 * coverage, mean(lengths));
  EXPECT_LT(std::abs(mean(errors)), 0.01);
  // 90-99 % of 200 runs; with fewer runs chance widens what is allowed.
  const double slack = n >= 200 ? 0.0 : 2 * std::sqrt(0.05 * 0.95 / n);
  EXPECT_GE(coverage, 0.90 - slack);
  EXPECT_LE(coverage, 0.99 + slack);
}

INSTANTIATE_TEST_SUITE_P(Sensors, EnergyStatistics, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ergotune
