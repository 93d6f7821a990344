// Calibration on simulated boards of known semantics: period, window and lag come back within 10 %.
#include "ergotune/measure/calibration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "energy_bench.hpp"
#include "ergotune/base/error.hpp"
#include "kept_numbers.hpp"
#include "power/sensor_semantics.hpp"

namespace ergotune {
namespace {

using fake_nvml::PowerSensorModel;

/// A rig in virtual time: the load is the fake board's background activity.
class VirtualRig : public CalibrationRig {
 public:
  enum class Reads { counter, power, samples };
  VirtualRig(const std::string& generation, Reads reads, std::function<void(fake_nvml::Board&)> change = {})
      : state_(std::make_unique<fake_nvml::State>()), reads_(reads), random_(5) {
    fake_nvml::initialise(*state_, "virtual=1 generation=" + generation);
    state_->virtual_time += 0.0137;
    if (change) change(board());
    fake_nvml::start(board(), state_->virtual_time);
    info_.id = "nvml:0/fake";
    info_.uuid = "GPU-fake";
    info_.driver = "1.2";
    info_.kind = reads == Reads::counter ? SensorKind::cumulative_energy : SensorKind::windowed_power;
  }
  fake_nvml::Board& board() { return state_->boards[0]; }
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
      board().background_activity = busy ? 0.6 : 0.0;
      const double start = now();
      while (now() < due) {
        state_->virtual_time += std::min(due - now() + 1e-6, 5e-4 + 3e-4 * random_.uniform());
        fake_nvml::advance(*state_, board(), now());
        poll(trace, last_sample);
        if (meter && meter_gain_ != 0)
          meter->push_back({now(), (board().power - meter_offset_) / meter_gain_});
      }
      if (busy) trace.busy.push_back({start, now()});
    }
    board().background_activity = 0;
    return trace;
  }

 private:
  double now() const { return state_->virtual_time; }
  void poll(CalibrationTrace& trace, double& last_sample) {
    auto& b = board();
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
  std::function<void(fake_nvml::Board&)> change;
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
      {"instant_with_lag", "hopper", Reads::power, [](auto& b) { b.instant = boxcar(0.1, 0.025, 0.04); }, 0.1,
       0.025, 0.04, SensorKind::windowed_power},
      {"ampere_instant", "ampere", Reads::power, [](auto& b) { b.instant = boxcar(0.1, 0.1, 0.02); }, 0.1,
       0.1, 0.02, SensorKind::windowed_power},
      {"average_1s", "ampere", Reads::power, [](auto& b) { b.instant = boxcar(0.1, 1.0, 0.0); }, 0.1, 1.0,
       0.0, SensorKind::windowed_power},
      {"volta", "volta", Reads::power, [](auto& b) { b.usage = boxcar(0.02, 0.01, 0.015); }, 0.02, 0.01,
       0.015, SensorKind::windowed_power},
      {"samples", "hopper", Reads::samples, [](auto& b) { b.samples = boxcar(0.02, 0.02, 0.03); }, 0.02, 0.02,
       0.03, SensorKind::windowed_power},
      {"kepler", "kepler", Reads::power, {}, 0.0152, 0.833, 0.0, SensorKind::exponential_power},
      {"counter", "hopper", Reads::counter, [](auto& b) { b.counter.lag = 0.05; }, 0.1, 0.0, 0.05,
       SensorKind::cumulative_energy},
      {"counter_that_sleeps", "ga100", Reads::counter, [](auto& b) { b.counter.lag = 0.03; }, 0.1, 0.025,
       0.03, SensorKind::cumulative_energy},
  };
}

/// All that a calibration found.
std::vector<double> numbers(const Calibration& c) {
  std::vector<double> all;
  const Calibrated none{-1, -1, -1};
  for (const Calibrated& one : {c.update_period, c.window, c.lag, c.read_cost, c.idle_power, c.repeatability.value_or(none),
                                c.counter_loss.value_or(none), c.meter ? c.meter->gain : none, c.meter ? c.meter->offset : none})
    all.insert(all.end(), {one.value, one.low, one.high});
  for (const double one : {c.counter_step.value_or(-1), c.explained, c.explained_other, c.shortest_measurement, c.sensor.gain_error,
                           c.sensor.level, c.sensor.level_error, c.sensor.repeatability, static_cast<double>(c.notes.size())})
    all.push_back(one);
  return all;
}

/// What an earlier release found of them, number by number.
const std::map<std::string, std::vector<double>>& kept_calibrations() {
  static const std::map<std::string, std::vector<double>> kept = {
      {"hopper_instant",
       {0.09999929659, 0.09999244563, 0.1000061475, 0.02492802976, 0.02486863094, 0.02503416863, 3.252304779e-05, 0,
        6.490027394e-05, 4e-05, 4e-05, 4e-05, 66.92778216, 66.72210059, 67.13346373, 0.001400141674, 0, 0.003753048756, -1, -1,
        -1, -1, -1, -1, -1, -1, -1, -1, 0.9998982487, 0.99727732, 0.4249577391, 0, 0, 0, 0.001400141674, 0}},
      {"instant_with_lag",
       {0.09999929659, 0.09999244563, 0.1000061475, 0.02482349801, 0.0247662876, 0.02488167808, 0.04010942378, 0.04008154583,
        0.04013778657, 4e-05, 4e-05, 4e-05, 66.82905164, 66.63426601, 67.02383728, 0.001321266933, 0, 0.004012269853, -1, -1,
        -1, -1, -1, -1, -1, -1, -1, -1, 0.9999252619, 0.9974625561, 0.4649301081, 0, 0, 0, 0.001321266933, 0}},
      {"ampere_instant",
       {0.09999929659, 0.09999244563, 0.1000061475, 0.100565203, 0.1002391517, 0.1008912542, 0.01977550037, 0.01961934932,
        0.01993165142, 4e-05, 4e-05, 4e-05, 22.0155942, 21.72836747, 22.30282092, 0.006115362028, 0.004134454935, 0.0112839115,
        -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0.9996842025, 0.9747108418, 0.5203378897, 0, 0, 0, 0.006115362028, 0}},
      {"average_1s",
       {0.09999929659, 0.09999244563, 0.1000061475, 1.000989953, 0.99453826, 1.008262771, 0.0003913173076, 0, 0.005103008298,
        4e-05, 4e-05, 4e-05, 21.70627825, 21.37799242, 22.03456407, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
        0.9976552348, 0.8297592536, 1.401378457, 0, 0, 0, 0, 0}},
      {"volta",
       {0.01999994715, 0.01999865721, 0.02000123709, 0.01009842912, 0.01008265033, 0.01011381345, 0.0149579758, 0.01495048087,
        0.01496527349, 4e-05, 4e-05, 4e-05, 28.83343116, 28.63203862, 29.03482369, 0.004192332271, 0.002738452776,
        0.007887078844, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0.9997398258, 0.9952592006, 0.1050561935, 0, 0, 0,
        0.004192332271, 0}},
      {"samples",
       {0.02, 0.02, 0.02, 0.02004786671, 0.02002437312, 0.0200713603, 0.02997388944, 0.02995979328, 0.02998837716, 4e-05,
        4e-05, 4e-05, 66.88920337, 66.67254872, 67.10585802, 0.001409659758, 0.0006233151436, 0.003011253915, -1, -1, -1, -1,
        -1, -1, -1, -1, -1, -1, 0.9998435284, 0.9876794857, 0.1300217562, 0, 0, 0, 0.001409659758, 0}},
      {"kepler",
       {0.01519991877, 0.01519893111, 0.01520090643, 0.9003275162, 0.8700821387, 0.9321906697, 0, 0, 0.001450723049, 4e-05,
        4e-05, 4e-05, 51.7426384, 50.6680121, 52.81726471, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0.9992799877,
        0.864539387, 0.4501637581, 0, 0, 0, 0, 0}},
      {"counter",
       {0.09999929659, 0.09999244563, 0.1000061475, 0.1002320452, 0.1000910939, 0.1003729966, 0.04987945181, 0.04979918787,
        0.04995873693, 4e-05, 4e-05, 4e-05, 66.80711501, 66.61369812, 67.0005319, 0, 0, 0.002357091051, 4.458276463,
        1.884445274, 7.032107652, -1, -1, -1, -1, -1, -1, 0.001, 0.9999105029, 0.9807869841, 0.4498766382, 0, 0, 0, 0, 0}},
      {"counter_that_sleeps",
       {0.09999929659, 0.09999244563, 0.1000061475, 0.0253229875, 0.02523000465, 0.02541597034, 0.02986059176, 0.02980841256,
        0.02991227637, 4e-05, 4e-05, 4e-05, 39.94820881, 39.83601475, 40.06040287, 0.002326844483, 0.0006769805607,
        0.005231118433, -0.3793684271, -0.9773163684, 0.2185795142, -1, -1, -1, -1, -1, -1, 0.001, 0.9997689896, 0.9956492701,
        0.4298577781, 0, 0, 0, 0.002326844483, 1}},
  };
  return kept;
}

class CalibrationOf : public testing::TestWithParam<Case> {};

TEST_P(CalibrationOf, RecoversPeriodWindowAndLag) {
  const Case& c = GetParam();
  VirtualRig rig(c.generation, c.reads, c.change);
  const Calibration found = calibrate(rig);
  std::printf(
      "%-20s period %.4f [%.4f %.4f]  window %.4f [%.4f %.4f]  lag %.4f [%.4f %.4f]  %s  explained %.3f "
      "(%.3f)  idle %.1f W\n",
      c.name, found.update_period.value, found.update_period.low, found.update_period.high,
      found.window.value, found.window.low, found.window.high, found.lag.value, found.lag.low, found.lag.high,
      to_string(found.sensor.kind).c_str(), found.explained, found.explained_other, found.idle_power.value);
  EXPECT_NEAR(found.update_period.value, c.period, 0.1 * c.period);
  EXPECT_NEAR(found.sensor.window, c.window, 0.1 * c.window);
  // 10 % of the lag, or where it is (nearly) nothing, a small part of what it shifts.
  EXPECT_NEAR(found.lag.value, c.lag, std::max({0.1 * c.lag, 0.002, 0.005 * c.window}));
  EXPECT_EQ(found.sensor.kind, c.kind);
  EXPECT_GT(found.explained, found.explained_other);
  EXPECT_GT(found.shortest_measurement, 0.02);
  expect_kept(numbers(found), kept_calibrations().at(c.name), 1e-3);
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
  expect_kept(numbers(found), {0.09999899635, 0.09999178829, 0.1000062044, 0.0591020892, 0.05274861461, 0.06776423914,
      0.01693765382, 0.01353004899, 0.01894620138, 4e-05, 4e-05, 4e-05, 66.97331463, 66.34216511, 67.60446414, -1, -1, -1,
      42.4255132, 39.78875049, 45.06227591, -1, -1, -1, -1, -1, -1, 0.25, 0.9263471732, 0.9213096869, 0.4169336392, 0, 0, 0, 0,
      1}, 1e-3);
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
  expect_kept(numbers(found), {0.09999929659, 0.09999244563, 0.1000061475, 0.1001731364, 0.09993835561, 0.1004040042, 0, 0,
      9.19558088e-05, 4e-05, 4e-05, 4e-05, 20.76785801, 20.48112927, 21.05458676, 0.006389707524, 0.004332796435,
      0.01176920277, -1, -1, -1, 0.921107684, 0.9010280411, 0.941187327, 3.123020464, 1.442201197, 4.803839731, -1,
      0.9997618118, 0.9749915309, 0.5001703227, 0.01112237387, 72.71370335, 0.3692432771, 0.006389707524, 0}, 1e-3);
}

TEST(Calibration, ASensorThatDoesNotFollowTheLoadIsAnError) {
  VirtualRig rig("ampere", VirtualRig::Reads::power, [](auto& b) { b.instant.gain = 0; });
  EXPECT_THROW(calibrate(rig), Error);
}

TEST(Calibration, IsFoundAgainBySensorsOfTheSameBoardAndDriver) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("ergotune-calibrate-" + std::to_string(getpid()));
  setenv("ERGOTUNE_DATA_DIR", folder.c_str(), 1);
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
  std::filesystem::remove_all(folder);
}

TEST(Calibration, JsonIsTheContract) {
  Calibration c;
  c.sensor.id = "nvml:0/energy";
  c.sensor.kind = SensorKind::cumulative_energy;
  c.update_period = {0.1, 0.099, 0.101};
  const auto document = nlohmann::json::parse(to_json(c));
  for (const char* name : {"sensor", "update_period", "window", "lag", "kind", "read_cost", "idle_power",
                           "shortest_measurement"})
    EXPECT_TRUE(document.contains(name)) << name;
  EXPECT_EQ(document["update_period"]["low"], 0.099);
  EXPECT_EQ(document["kind"], "cumulative_energy");
}

}  // namespace
}  // namespace ergotune
