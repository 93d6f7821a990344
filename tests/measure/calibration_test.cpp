// Calibration on simulated GPUs of known semantics: period, window and lag come back within 10 %.
#include "measure/calibration/calibration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "energy_bench.hpp"
#include "ergotune/error.hpp"
#include "power/sensors/stored_calibration.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

using fake_nvml::PowerSensorModel;

/// A rig in virtual time: the load is the fake GPU's background activity.
class VirtualRig : public CalibrationRig {
 public:
  enum class Reads { counter, power, samples };
  VirtualRig(const std::string& generation, Reads reads, std::function<void(fake_nvml::Gpu&)> change = {})
      : state_(std::make_unique<fake_nvml::State>()), reads_(reads), random_(5) {
    fake_nvml::initialise(*state_, "virtual=1 generation=" + generation);
    state_->virtual_time += 0.0137;
    if (change) change(gpu());
    fake_nvml::start(gpu(), state_->virtual_time);
    info_.id = "nvml:0/fake";
    info_.uuid = "GPU-fake";
    info_.driver = "1.2";
    info_.kind = reads == Reads::counter ? SensorKind::cumulative_energy : SensorKind::windowed_power;
  }
  fake_nvml::Gpu& gpu() { return state_->gpus[0]; }
  const SensorInfo& sensor() const override { return info_; }
  std::vector<double> read_costs() override { return std::vector<double>(20, 40e-6); }
  bool has_meter() const override { return meter_gain_ != 0; }
  std::string meter_id() const override { return "command:meter"; }
  void add_meter(double gain, double offset) { meter_gain_ = gain, meter_offset_ = offset; }

  CalibrationTrace drive(const std::vector<double>& on_off, std::vector<Reading>* meter) override {
    CalibrationTrace trace;
    double due = now(), last_sample = -1;
    for (std::size_t i = 0; i < on_off.size(); ++i) {
      due += on_off[i];
      if (on_off[i] <= 0) continue;
      const bool busy = i % 2 == 0;
      gpu().background_activity = busy ? 0.6 : 0.0;
      const double start = now();
      while (now() < due) {
        state_->virtual_time += std::min(due - now() + 1e-6, 5e-4 + 3e-4 * random_.uniform());
        fake_nvml::advance(*state_, gpu(), now());
        poll(trace, last_sample);
        if (meter && meter_gain_ != 0) meter->push_back({now(), (gpu().power - meter_offset_) / meter_gain_});
      }
      if (busy) trace.busy.push_back({start, now()});
    }
    gpu().background_activity = 0;
    return trace;
  }

 private:
  double now() const { return state_->virtual_time; }
  void poll(CalibrationTrace& trace, double& last_sample) {
    auto& b = gpu();
    if (reads_ == Reads::counter) {
      trace.readings.push_back({now(), b.counter_energy});
    } else if (reads_ == Reads::power) {
      const auto& model = b.instant.supported ? b.instant : b.usage;
      const double tick = fake_nvml::last_tick(model.phase, model.period, b.time);
      trace.readings.push_back({now(), fake_nvml::power_reading(b, model, tick)});
    } else {
      const double tick = fake_nvml::last_tick(b.samples.phase, b.samples.period, b.time);
      if (last_sample < 0) last_sample = tick;
      for (double t = last_sample + b.samples.period; t <= tick + 1e-9; t += b.samples.period)
        trace.readings.push_back({t, fake_nvml::power_reading(b, b.samples, t)});
      last_sample = std::max(last_sample, tick);
    }
  }
  std::unique_ptr<fake_nvml::State> state_;
  Reads reads_;
  Random random_;
  SensorInfo info_;
  double meter_gain_ = 0, meter_offset_ = 0;
};

struct Case {
  const char* name;
  const char* generation;
  VirtualRig::Reads reads;
  std::function<void(fake_nvml::Gpu&)> change;
  double period, window, lag;
  SensorKind kind;
};

PowerSensorModel boxcar(double period, double window, double lag) {
  PowerSensorModel model = fake_nvml::boxcar(period, window, lag);
  return model;
}

std::vector<Case> cases() {
  using Reads = VirtualRig::Reads;
  return {
      {"hopper_instant", "hopper", Reads::power, {}, 0.1, 0.025, 0.0, SensorKind::windowed_power},
      {"instant_with_lag", "hopper", Reads::power, [](auto& b) { b.instant = boxcar(0.1, 0.025, 0.04); }, 0.1, 0.025,
       0.04, SensorKind::windowed_power},
      {"ampere_instant", "ampere", Reads::power, [](auto& b) { b.instant = boxcar(0.1, 0.1, 0.02); }, 0.1, 0.1, 0.02,
       SensorKind::windowed_power},
      {"average_1s", "ampere", Reads::power, [](auto& b) { b.instant = boxcar(0.1, 1.0, 0.0); }, 0.1, 1.0, 0.0,
       SensorKind::windowed_power},
      {"volta", "volta", Reads::power, [](auto& b) { b.usage = boxcar(0.02, 0.01, 0.015); }, 0.02, 0.01, 0.015,
       SensorKind::windowed_power},
      {"samples", "hopper", Reads::samples, [](auto& b) { b.samples = boxcar(0.02, 0.02, 0.03); }, 0.02, 0.02, 0.03,
       SensorKind::windowed_power},
      {"kepler", "kepler", Reads::power, {}, 0.0152, 0.833, 0.0, SensorKind::exponential_power},
      {"counter", "hopper", Reads::counter, [](auto& b) { b.counter.lag = 0.05; }, 0.1, 0.0, 0.05,
       SensorKind::cumulative_energy},
      {"counter_that_sleeps", "ga100", Reads::counter, [](auto& b) { b.counter.lag = 0.03; }, 0.1, 0.025, 0.03,
       SensorKind::cumulative_energy},
  };
}

class CalibrationOf : public testing::TestWithParam<Case> {};

TEST_P(CalibrationOf, RecoversPeriodWindowAndLag) {
  const Case& c = GetParam();
  VirtualRig rig(c.generation, c.reads, c.change);
  const Calibration found = calibrate(rig);
  std::printf(
      "%-20s period %.4f [%.4f %.4f]  window %.4f [%.4f %.4f]  lag %.4f [%.4f %.4f]  %s  explained %.3f (%.3f)  idle "
      "%.1f W\n",
      c.name, found.update_period.value, found.update_period.low, found.update_period.high, found.window.value,
      found.window.low, found.window.high, found.lag.value, found.lag.low, found.lag.high,
      to_string(found.sensor.kind).c_str(), found.explained, found.explained_other, found.idle_power.value);
  EXPECT_NEAR(found.update_period.value, c.period, 0.1 * c.period);
  EXPECT_NEAR(found.sensor.window, c.window, 0.1 * c.window);
  // 10 % of the lag, or where it is (nearly) nothing, a small part of what it shifts.
  EXPECT_NEAR(found.lag.value, c.lag, std::max({0.1 * c.lag, 0.002, 0.005 * c.window}));
  EXPECT_EQ(found.sensor.kind, c.kind);
  EXPECT_GT(found.explained, found.explained_other);
  EXPECT_GT(found.shortest_measurement, 0.02);
}

INSTANTIATE_TEST_SUITE_P(Sensors, CalibrationOf, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Calibration, FindsWhatTheCounterMissesAndItsStep) {
  VirtualRig rig("hopper", VirtualRig::Reads::counter, [](auto& b) {
    b.counter.step = 0.25;
    b.counter.missed_after_idle = 40;
  });
  const Calibration found = calibrate(rig);
  EXPECT_NEAR(*found.counter_step, 0.25, 1e-9);
  EXPECT_NEAR(found.counter_loss->value, 40, 6);
}

TEST(Calibration, GainAndOffsetFromAnExternalMeter) {
  VirtualRig rig("ampere", VirtualRig::Reads::power, [](auto& b) {
    b.instant.gain = 1.08;
    b.instant.offset = -3;
  });
  rig.add_meter(1, 0);
  const Calibration found = calibrate(rig);
  ASSERT_TRUE(found.meter);
  EXPECT_NEAR(found.meter->gain.value, 1 / 1.08, 0.01);
  EXPECT_NEAR(found.meter->offset.value, 3 / 1.08, 1.5);
}

TEST(Calibration, ASensorThatDoesNotFollowTheLoadIsAnError) {
  VirtualRig rig("ampere", VirtualRig::Reads::power, [](auto& b) { b.instant.gain = 0; });
  EXPECT_THROW(calibrate(rig), Error);
}

TEST(Calibration, IsFoundAgainBySensorsOfTheSameGpuAndDriver) {
  const TemporaryFolder folder;
  setenv("ERGOTUNE_DATA_DIR", folder.path().c_str(), 1);
  VirtualRig rig("hopper", VirtualRig::Reads::power);
  const Calibration found = calibrate(rig);
  store_calibration(found);
  SensorInfo again = rig.sensor();
  ASSERT_TRUE(apply_stored_calibration(again));
  EXPECT_EQ(again.window, found.sensor.window);
  EXPECT_EQ(again.update_period, found.sensor.update_period);
  EXPECT_EQ(again.kind, found.sensor.kind);
  again.driver = "1.3";
  EXPECT_FALSE(apply_stored_calibration(again));
}

TEST(Calibration, JsonIsTheContract) {
  Calibration c;
  c.sensor.id = "nvml:0/energy";
  c.sensor.kind = SensorKind::cumulative_energy;
  c.update_period = {0.1, 0.099, 0.101};
  const auto document = nlohmann::json::parse(to_json(c));
  for (const char* name :
       {"sensor", "update_period", "window", "lag", "kind", "read_cost", "idle_power", "shortest_measurement"})
    EXPECT_TRUE(document.contains(name)) << name;
  EXPECT_EQ(document["update_period"]["low"], 0.099);
  EXPECT_EQ(document["kind"], "cumulative_energy");
}

}  // namespace
}  // namespace ergotune
