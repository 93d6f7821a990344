// The whole path in real time: fake library, sensors, the reading thread, the stream of launches, the decision to stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/live_file.hpp"
#include "base/statistics.hpp"
#include "energy_fake_device.hpp"
#include "ergotune/error.hpp"
#include "error_of.hpp"
#include "measure/energy/energy.hpp"
#include "measure/observers/observation.hpp"
#include "measure/timing/workload.hpp"
#include "patience.hpp"
#include "virtual_meter.hpp"

namespace ergotune {
namespace {

using fake_nvml::FakeNvml;
using test::with_patience;
using testing::Contains;
using testing::HasSubstr;

class EnergyOnFakeGpu : public testing::Test {
 protected:
  void SetUp() override { setenv("ERGOTUNE_DATA_DIR", "/nonexistent", 1); }
  static FakeNvml& fake(const std::string& description) { return FakeNvml::shared(description); }

  struct Outcome {
    EnergyResult result;
    LaunchStream stream;
    double truth = 0;  ///< J per launch over what was measured
    double seconds = 0;
  };
  static Outcome measure(FakeNvml& nvml, GpuDevice& device, GpuKernel& kernel, EnergyOptions options = {},
                         const std::vector<std::string>& ids = {}, double give_up_above = 1e300) {
    auto sources = energy_sources(ids, "fake", device.info().uuid, "", false);
    auto meter = std::make_shared<EnergyMeter>(std::move(sources.sensors), std::move(sources.monitor), options);
    Observation observation;
    observation.add(meter);
    ObservedConfiguration observed;
    observed.give_up_above = give_up_above;
    observed.objective_quantity = "energy";
    observed.expected_launch_seconds = fake_nvml::launch_seconds(kernel.item, fake_nvml::top_clock(nvml.gpu()));
    meter->register_configuration(observed);
    Outcome out;
    KernelWorkload workload(device, kernel);
    out.stream = observation.stream(device, workload, observed.expected_launch_seconds, 3.0);
    out.result = meter->result();
    const LaunchAxis axis(out.stream);
    const TimeSpan span = out.result.measured;
    out.truth = (nvml.true_energy_at(span.to) - nvml.true_energy_at(span.from)) /
                (axis.launches_at(span.to) - axis.launches_at(span.from));
    out.seconds = out.stream.marks.back().host_time - out.stream.queued_at;
    return out;
  }
};

// In real time: launches queue up and sensors are read by a thread of the tested code, so a machine that does
// not run it for tens of milliseconds shows in the numbers.
constexpr const char* kBusy =
    "the queue of launches ran empty, or a sensor was read late, where the processor was elsewhere";

using QuietEnergyOnFakeGpu = EnergyOnFakeGpu;

// A host that comes back late finds the device idle: that gap belongs to no launch. (Before, time and energy of a
// launch were those of the idling too.)
TEST_F(EnergyOnFakeGpu, WhatTheDeviceIdledBecauseTheHostWasBusyIsAPause) {
  auto& nvml = fake("generation=hopper");
  GpuDevice device(nvml);
  GpuKernel kernel = device.kernel(1e-3, 0, 0.8);
  KernelWorkload workload(device, kernel);
  LaunchStreamer streamer(device, workload, 0.005, 1e-3);
  streamer.begin();
  for (int i = 0; i < 60 && streamer.next_mark(); ++i) {
    if (i % 10 == 5) usleep(60'000);  // twelve marks' time
    streamer.launch_chunk();
  }
  while (streamer.next_mark()) {
  }
  const LaunchAxis axis(streamer.stream());
  const auto& pauses = axis.pauses();  // on a busy machine there are shorter ones too
  EXPECT_GE(std::ranges::count_if(pauses, [](const TimeSpan& pause) { return pause.length() > 0.03; }), 5);
  const auto per = axis.time_per_launch({axis.begin(), axis.end()});
  EXPECT_NEAR(per.seconds, 1e-3, 2e-5);
  EXPECT_NEAR(static_cast<double>(per.launches), axis.launches().back(), 0.5);
}

TEST_F(QuietEnergyOnFakeGpu, EnergyPowerTimeAndGpuComeFromTheSameLaunches) {
  with_patience(kBusy, [&] {
    auto& nvml = fake("generation=hopper");
    GpuDevice device(nvml);
    auto kernel = device.kernel(1e-3, 1e-3, 0.5);
    measure(nvml, device, kernel);  // warm
    EnergyOptions options;
    options.idle_power = 60;
    options.precision = 0.03;
    const Outcome out = measure(nvml, device, kernel, options);
    const auto& q = out.result.quantities;
    ASSERT_TRUE(q.contains("energy")) << out.result.message;
    EXPECT_NEAR(q.at("energy").value, out.truth, 0.03 * out.truth);
    EXPECT_NEAR(q.at("time").value, 2e-3, 2e-5);
    EXPECT_NEAR(q.at("power").value * q.at("time").value, q.at("energy").value, 0.03 * out.truth);
    EXPECT_NEAR(q.at("idle_subtracted_energy").value, q.at("energy").value - 60 * q.at("time").value, 1e-9);
    EXPECT_NEAR(q.at("core_clock").value, 1980e6, 1e6);
    EXPECT_GT(q.at("temperature").value, 30);
    EXPECT_EQ(q.at("memory_clock").value, 2619e6);
    EXPECT_THAT(q.at("energy").sensor, HasSubstr("nvml:0/"));
    EXPECT_GT(q.at("energy").standard_error, 0);
    EXPECT_GT(q.at("energy").n, 5);
  });
}

TEST_F(QuietEnergyOnFakeGpu, ShortKernelsAreBatched) {
  with_patience(kBusy, [&] {
    auto& nvml = fake("generation=hopper");
    GpuDevice device(nvml);
    auto kernel = device.kernel(10e-6, 10e-6, 0.3);
    EnergyOptions options;
    options.precision = 0.03;
    const Outcome out = measure(nvml, device, kernel, options);
    EXPECT_NEAR(out.result.quantities.at("energy").value, out.truth, 0.04 * out.truth);
    EXPECT_NEAR(out.result.quantities.at("time").value, 20e-6, 1e-6);
  });
}

TEST_F(QuietEnergyOnFakeGpu, PowerCapIsSaidAndTheValueIsValid) {
  with_patience(kBusy, [&] {
    auto& nvml = fake("generation=hopper");
    GpuDevice device(nvml);
    auto kernel = device.kernel(2e-3, 0, 1.1);
    EnergyOptions options;
    options.precision = 0.05;
    const Outcome out = measure(nvml, device, kernel, options);
    EXPECT_THAT(out.result.warnings, Contains("power cap"));
    EXPECT_NEAR(out.result.quantities.at("energy").value, out.truth, 0.05 * out.truth);
    EXPECT_LT(out.result.quantities.at("core_clock").value, 1900e6);
  });
}

TEST_F(QuietEnergyOnFakeGpu, RacingStopsWhatCanNoLongerWin) {
  with_patience(kBusy, [&] {
    auto& nvml = fake("generation=hopper");
    GpuDevice device(nvml);
    auto kernel = device.kernel(1e-3, 0, 0.5);
    EnergyOptions options;
    options.precision = 1e-6;  // would use the whole budget
    options.budget = 2.5;
    const Outcome out = measure(nvml, device, kernel, options, {}, 1e-3);
    EXPECT_EQ(out.result.status, Status::ok);
    EXPECT_THAT(out.result.warnings, Contains(HasSubstr("can no longer win")));
    EXPECT_LT(out.seconds, 2.4);
  });
}

TEST_F(EnergyOnFakeGpu, AWholeBudgetIsUsedWhateverThePrecisionAndTheOthers) {
  auto& nvml = fake("generation=hopper");
  GpuDevice device(nvml);
  auto kernel = device.kernel(1e-3, 0, 0.5);
  EnergyOptions options;
  options.precision = 0.5;  // met at once
  options.budget = 1.5;
  options.whole_budget = true;
  const Outcome out = measure(nvml, device, kernel, options, {}, 1e-3);  // beside one that is far better
  EXPECT_EQ(out.result.status, Status::ok);
  EXPECT_GE(out.seconds, 1.5);
}

TEST_F(EnergyOnFakeGpu, BudgetIsACeilingAndTheValueIsKept) {
  auto& nvml = fake("generation=hopper");
  GpuDevice device(nvml);
  auto kernel = device.kernel(1e-3, 0, 0.5);
  EnergyOptions options;
  options.precision = 1e-6;
  options.budget = 0.7;
  const Outcome out = measure(nvml, device, kernel, options);
  EXPECT_EQ(out.result.status, Status::not_converged);
  EXPECT_TRUE(out.result.quantities.contains("energy"));
  EXPECT_THAT(out.result.message, HasSubstr("was asked"));
}

TEST_F(EnergyOnFakeGpu, ASensorThatFailsGivesAStatusNeverANumber) {
  auto& nvml = fake("generation=hopper");
  GpuDevice device(nvml);
  auto kernel = device.kernel(1e-3, 0, 0.5);
  nvml.add_fault("nvmlDeviceGetTotalEnergyConsumption", 15, 20);
  const Outcome out = measure(nvml, device, kernel, {}, {"nvml:0/energy"});
  EXPECT_EQ(out.result.status, Status::unsupported);
  EXPECT_FALSE(out.result.quantities.contains("energy"));
  EXPECT_THAT(out.result.message, HasSubstr("GPU is lost"));
}

TEST_F(EnergyOnFakeGpu, ACounterThatStandsStillGivesAStatus) {
  auto& nvml = fake("generation=hopper");
  GpuDevice device(nvml);
  auto kernel = device.kernel(1e-3, 0, 0.5);
  nvml.gpu().counter.gain = 0;
  const Outcome out = measure(nvml, device, kernel, {}, {"nvml:0/energy"});
  EXPECT_EQ(out.result.status, Status::unsupported);
  EXPECT_FALSE(out.result.quantities.contains("energy"));
  EXPECT_THAT(out.result.message, HasSubstr("did not move"));
}

TEST_F(EnergyOnFakeGpu, NoSensorIsOneMessageThatNamesWhatWasLookedFor) {
  fake("generation=hopper");
  EXPECT_THAT(error_of([&] { energy_sources({}, "Some GPU", "GPU-unknown", "", false); }),
              testing::AllOf(HasSubstr("Some GPU"), HasSubstr("NVML"), HasSubstr("--sensor")));
}

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
