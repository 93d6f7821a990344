// Parts of a calibration: the period of updates, what is said of a sensor that does not follow the load, and what is kept of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "ergotune/base/error.hpp"
#include "ergotune/base/statistics.hpp"
#include "ergotune/measure/calibration.hpp"
#include "kept_numbers.hpp"

namespace ergotune {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

/// Polls every `poll` s of a sensor that has another value every `period` s, from `first` on.
std::vector<Reading> polled(int updates, int polls_per_update, double poll, const std::vector<int>& equal = {}) {
  std::vector<Reading> readings;
  for (int i = 0; i < updates * polls_per_update; ++i) {
    int update = i / polls_per_update;
    while (std::find(equal.begin(), equal.end(), update) != equal.end()) --update;
    readings.push_back({poll * i, 100.0 + update});
  }
  return readings;
}

TEST(UpdatePeriod, IsTheLineThroughTheChangesWithTheErrorThatPollsLeave) {
  const auto found = find_update_period(polled(21, 50, 2e-3));
  EXPECT_NEAR(found.value, 0.1, 1e-12);
  // 19 periods between the first change and the last, each of which was seen within 2 ms
  EXPECT_NEAR(found.high - found.value, 2 * 2e-3 / std::sqrt(12.0) / 19, 1e-9);
  EXPECT_NEAR(found.value - found.low, found.high - found.value, 1e-12);
}

TEST(UpdatePeriod, CountsUpdatesThatChangedNothing) {
  const auto found = find_update_period(polled(21, 50, 2e-3, {3, 7, 8, 15}));
  EXPECT_NEAR(found.value, 0.1, 1e-12);
  EXPECT_NEAR(found.high - found.value, 2 * 2e-3 / std::sqrt(12.0) / 19, 1e-9);
}

TEST(UpdatePeriod, NeedsFourChanges) {
  EXPECT_EQ(find_update_period(polled(4, 50, 2e-3)).value, 0);
  EXPECT_NEAR(find_update_period(polled(5, 50, 2e-3)).value, 0.1, 1e-12);
  EXPECT_EQ(find_update_period({}).value, 0);
}

TEST(UpdatePeriod, OfASensorThatStampsItsReadingsIsTheMiddleOfTheirGaps) {
  std::vector<Reading> readings;
  std::vector<double> gaps;
  double t = 1;
  for (int i = 0; i <= 20; ++i) {
    readings.push_back({t, 100.0 + (i == 7 ? 6 : i)});  // one repeats the value before
    gaps.push_back(0.1 + 0.01 * noise(static_cast<std::uint32_t>(i)));
    t += gaps.back();
  }
  gaps.pop_back();
  const auto found = find_update_period(readings);
  EXPECT_NEAR(found.value, median(gaps), 1e-12);
  EXPECT_NEAR(found.low, quantile(gaps, 0.1), 1e-12);
  EXPECT_NEAR(found.high, quantile(gaps, 0.9), 1e-12);
}

/// A board of 50 W, 250 W under load, in a time of its own, and a sensor that stamps a reading every 0.1 s: of its power at that moment, or
/// of the mean since the reading before. What it then says of those watts, and of the number of the reading, a test decides.
class PlainRig : public CalibrationRig {
 public:
  using Says = std::function<double(double watts, std::uint32_t number)>;
  explicit PlainRig(Says says, bool averages = false) : says_(std::move(says)), averages_(averages) {
    info_.id = "plain";
    info_.kind = SensorKind::windowed_power;
  }
  const SensorInfo& sensor() const override { return info_; }
  std::vector<double> read_costs() override { return {3e-5, 1e-5, 2e-5}; }
  bool has_meter() const override { return meter_readings > 0; }
  std::string meter_id() const override { return "meter"; }
  CalibrationTrace drive(const std::vector<double>& on_off, std::vector<Reading>* meter) override {
    CalibrationTrace trace;
    for (std::size_t i = 0; i < on_off.size(); ++i) {
      const double from = now_, to = now_ + on_off[i], watts = i % 2 == 0 ? 250 : 50;
      for (double next = kPeriod * (number_ + 1); next <= to; next = kPeriod * (number_ + 1)) {
        pass(next, watts);
        trace.readings.push_back({now_, says_(averages_ ? joules_ / kPeriod : watts, ++number_)});
        if (meter && meter->size() < meter_readings) meter->push_back({now_, 2 * joules_ / kPeriod});
        joules_ = 0;
      }
      pass(to, watts);
      if (i % 2 == 0 && on_off[i] > 0) trace.busy.push_back({from, to});
    }
    if (silent) trace.readings.clear();
    return trace;
  }
  bool silent = false;
  std::size_t meter_readings = 0;  ///< at most

 private:
  static constexpr double kPeriod = 0.1;
  void pass(double to, double watts) {
    joules_ += (to - now_) * watts;
    now_ = to;
  }
  Says says_;
  bool averages_;
  SensorInfo info_;
  double now_ = 0.0137, joules_ = 0;
  std::uint32_t number_ = 0;
};

double slightly(double watts, std::uint32_t number) { return watts + noise(number); }

std::string failure(CalibrationRig& rig) {
  try {
    calibrate(rig);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(CalibrationParts, ASensorWithoutWindowIsCalledSo) {
  PlainRig rig(slightly);
  const Calibration found = calibrate(rig);
  EXPECT_EQ(found.sensor.kind, SensorKind::instantaneous_power);
  EXPECT_NEAR(found.update_period.value, 0.1, 1e-3);
  EXPECT_NEAR(found.idle_power.value, 50, 0.2);
  EXPECT_LT(found.idle_power.low, found.idle_power.value);
  EXPECT_EQ(found.read_cost.value, 2e-5);
  EXPECT_GT(found.explained, 0.95);
  EXPECT_THAT(found.notes, IsEmpty());
  EXPECT_TRUE(found.sensor.calibrated);
  EXPECT_FALSE(found.meter);
  EXPECT_LT(found.repeatability.value().value, 2e-3) << "it is the same each time";
}

TEST(CalibrationParts, WhatTheLoadDoesNotExplainIsSaidOrRefused) {
  PlainRig other([](double, std::uint32_t number) { return 100 + 200 * noise(number); });
  EXPECT_THAT(failure(other), HasSubstr("sensor plain does not follow the load: it explains only "));
  PlainRig half([](double watts, std::uint32_t number) { return watts + 300 * noise(number); });
  const Calibration found = calibrate(half);
  EXPECT_GT(found.explained, 0.3);
  EXPECT_LT(found.explained, 0.9);
  EXPECT_THAT(found.notes, Contains(fmt::format("the load explains only {:.0f} % of what the sensor shows", 100 * found.explained)));
}

TEST(CalibrationParts, ASensorThatHardlyAnswersOrNeverChangesIsRefused) {
  PlainRig silent(slightly);
  silent.silent = true;
  EXPECT_EQ(failure(silent), "sensor plain gave 0 readings in 6 s");
  PlainRig still([](double, std::uint32_t) { return 7; });
  EXPECT_EQ(failure(still), "sensor plain did not change while a load was switched on and off");
}

TEST(CalibrationParts, AMeterGivesAGainOrANoteThatItSaidTooLittle) {
  PlainRig rig(slightly, true);
  rig.meter_readings = 1000;
  const Calibration found = calibrate(rig);
  ASSERT_TRUE(found.meter);
  EXPECT_EQ(found.meter->sensor, "meter");
  EXPECT_NEAR(found.sensor.gain, 2, 0.1);
  EXPECT_LT(found.meter->gain.low, found.meter->gain.value);
  EXPECT_GT(found.meter->gain.high, found.meter->gain.value);
  PlainRig rare(slightly, true);
  rare.meter_readings = 3;
  const Calibration none = calibrate(rare);
  EXPECT_FALSE(none.meter);
  EXPECT_EQ(none.sensor.gain, 1);
  EXPECT_THAT(none.notes, Contains("the external meter gave too few readings for a gain"));
}

class KeptCalibration : public testing::Test {
 protected:
  KeptCalibration() : folder(std::filesystem::temp_directory_path() / ("ergotune-kept-" + std::to_string(::getpid()))) {
    ::setenv("ERGOTUNE_DATA_DIR", folder.c_str(), 1);
    found.sensor.id = "nvml:0/instant";
    found.sensor.uuid = "GPU-1";
    found.sensor.driver = "1.2";
    found.sensor.window = 0.025;
    found.sensor.unit_step = 0.001;
    found.sensor.repeatability = 0.004;
    found.window = {0.03, 0.02, 0.04};
  }
  ~KeptCalibration() override {
    ::unsetenv("ERGOTUNE_DATA_DIR");
    std::filesystem::remove_all(folder);
  }
  nlohmann::json stored() {
    std::ifstream in(store_calibration(found));
    return nlohmann::json::parse(in);
  }
  std::filesystem::path folder;
  Calibration found;
};

TEST_F(KeptCalibration, HoldsWhatTheEstimatorsUseOfEachSensorOfABoard) {
  auto document = stored();
  EXPECT_EQ(document["board"], "GPU-1");
  EXPECT_EQ(document["driver"], "1.2");
  const auto& entry = document["sensors"]["instant"];
  EXPECT_EQ(entry["window"]["value"], 0.025) << "what is used, not what was fitted";
  EXPECT_EQ(entry["window"]["high"], 0.04);
  EXPECT_EQ(entry["repeatability"]["value"], 0.004);
  EXPECT_EQ(entry["unit_step"], 0.001);
  EXPECT_FALSE(entry.contains("meter"));
  found.sensor.id = "nvml:0/energy";
  found.meter = Calibration::Meter{"command:meter", {1.1, 1, 1.2}, {3, 2, 4}};
  found.sensor.gain = 1.1;
  found.sensor.offset = 3;
  found.sensor.level_error = 0.7;
  document = stored();
  EXPECT_EQ(document["sensors"].size(), 2u) << "the other stays";
  EXPECT_EQ(document["sensors"]["energy"]["meter"]["gain"], 1.1);
  EXPECT_EQ(document["sensors"]["energy"]["meter"]["level_error"], 0.7);
  found.sensor.driver = "1.3";
  EXPECT_EQ(stored()["sensors"].size(), 1u) << "another driver may read the other in another way";
  found.sensor.uuid.clear();
  EXPECT_EQ(stored()["board"], "nvml:0/energy");
}

TEST_F(KeptCalibration, TakesThePlaceOfAFileThatIsNone) {
  const auto file = store_calibration(found);
  for (const char* text : {"{", "[1]", ""}) {
    std::ofstream(file) << text;
    EXPECT_EQ(stored()["sensors"].size(), 1u) << text;
  }
}

TEST_F(KeptCalibration, SaysWhereItCannotBeWritten) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "file") << "no folder";
  ::setenv("ERGOTUNE_DATA_DIR", (folder / "file").c_str(), 1);
  try {
    store_calibration(found);
    ADD_FAILURE() << "a file is no folder";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot write "));
  }
}

TEST(CalibrationJson, HasWhatWasFoundAndNothingElse) {
  Calibration c;
  const auto names = [&] { return nlohmann::json::parse(to_json(c)); };
  for (const char* name : {"repeatability", "counter_step", "counter_loss", "meter"}) EXPECT_FALSE(names().contains(name)) << name;
  c.repeatability = {0.1, 0, 0.2};
  c.counter_step = 0.001;
  c.counter_loss = {4, 3, 5};
  c.meter = Calibration::Meter{"m", {1.1, 1, 1.2}, {3, 2, 4}};
  const auto all = names();
  EXPECT_EQ(all["repeatability"]["high"], 0.2);
  EXPECT_EQ(all["counter_step"], 0.001);
  EXPECT_EQ(all["counter_loss"]["value"], 4);
  EXPECT_EQ(all["meter"]["gain"]["low"], 1);
  EXPECT_EQ(all["meter"]["offset"]["value"], 3);
}

}  // namespace
}  // namespace ergotune
