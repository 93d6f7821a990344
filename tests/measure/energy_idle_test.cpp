// The power of a GPU at rest, as the energy meter measures it before the first configuration; and what it shows of
// itself.
#include <unistd.h>

#include <filesystem>

#include "base/live_file.hpp"
#include "base/statistics.hpp"
#include "virtual_meter.hpp"

namespace ergotune {
namespace {

/// Reads of 0.125 s each in the pause, then a measurement of 100 W, a millisecond each launch.
struct EnergyIdle : test::VirtualMeter {
  static constexpr double kTick = 0.125;
  std::vector<double> idle;  ///< W of each reading of the pause
  EnergyIdle() {
    options.whole_budget = true;
    options.budget = 1;
    sensors[0]->value = [this](double t) {
      const auto at = static_cast<std::size_t>((t - 1024) / kTick);
      return at < idle.size() ? idle[at] : 100.0;
    };
  }
  /// "less 60 W of idle power", or nothing where none is known.
  std::string subtracted() {
    now = 1024;
    options.idle_pause = kTick * static_cast<double>(idle.size());
    make();
    step = kTick;
    meter->register_configuration({});
    step = 0;
    now = std::max(now, 1024 + kTick * static_cast<double>(idle.size()));
    stream();
    const auto& quantities = meter->result().quantities;
    const auto found = quantities.find("idle_subtracted_energy");
    if (found == quantities.end()) return "";
    return found->second.method.substr(found->second.method.find("less"));
  }
};

TEST_F(EnergyIdle, IsThatOfTheSecondHalfOfThePause) {
  idle = {900, 800, 700, 600, 500, 400, 300, 200, 150, 120, 61, 59, 62, 58, 63, 57, 60, 60, 64, 56};
  EXPECT_EQ(subtracted(), "less 60 W of idle power");
  EXPECT_NEAR(meter->result().quantities.at("idle_subtracted_energy").value, 0.1 - 60e-3, 1e-9);
}

TEST_F(EnergyIdle, IsMeasuredOnceBeforeTheFirstConfiguration) {
  idle = std::vector<double>(20, 60);
  subtracted();
  const int reads = sensors[0]->reads;
  meter->register_configuration({});
  EXPECT_EQ(sensors[0]->reads, reads);
  options.idle_power = 70;
  EXPECT_EQ(subtracted(), "less 70 W of idle power") << "it is known already";
  options.idle_power.reset();
  options.idle_pause = 0;
  make();
  const int before = sensors[0]->reads;
  meter->register_configuration({});
  EXPECT_EQ(sensors[0]->reads, before) << "nobody asks for it";
  sensors.clear();
  options.idle_pause = 1;
  make();
  const double then = now;
  meter->register_configuration({});
  EXPECT_EQ(now, then) << "without a sensor there is nothing to wait for";
}

/// A session's live file, which the meter writes to.
struct EnergyShown : test::VirtualMeter {
  std::filesystem::path file = std::filesystem::path(testing::TempDir()) / ("live-meter" + std::to_string(::getpid()));
  std::unique_ptr<LiveFile> session = LiveFile::create(file);
  std::uint64_t next = 0;
  EnergyShown() {
    set_live_path(file);
    options.monitor_period = 0.01;
  }
  ~EnergyShown() override {
    set_live_path({});
    live_file();  // lets go of the one that ends here
  }
  std::vector<LiveSample> shown() { return session->samples(next); }
};

TEST_F(EnergyShown, IsTheGpuWhileItIsMeasuredAndThatItHasEnded) {
  gpu = [] {
    DeviceState state;
    state.core_clock_mhz = 1500;
    state.memory_clock_mhz = 2600;
    state.temperature_c = 45;
    state.power_w = 250;
    state.clock_reasons = {"power_cap", "thermal"};
    return state;
  };
  make();
  stream();
  const auto samples = shown();
  ASSERT_GT(samples.size(), 10u);
  EXPECT_EQ(samples.front().window, 0u) << "power settles";
  EXPECT_EQ(samples[samples.size() - 2].window, 1u) << "what counts";
  EXPECT_EQ(samples.back().window, 2u) << "the end";
  EXPECT_TRUE(std::isnan(samples.back().power_w));
  const LiveSample& sample = samples[samples.size() - 2];
  EXPECT_EQ(sample.power_w, 100) << "the sensor's";
  EXPECT_EQ(sample.core_mhz, 1500);
  EXPECT_EQ(sample.memory_mhz, 2600);
  EXPECT_EQ(sample.temperature_c, 45);
  EXPECT_STREQ(sample.reasons, "power_cap,thermal");
  for (const LiveSample& one : samples) EXPECT_EQ(one.writer, static_cast<std::uint32_t>(::getpid()));
}

}  // namespace
}  // namespace ergotune
