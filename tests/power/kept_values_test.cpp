// What is kept of a board, found again under its driver only; and what a control may be asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/files.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/power/control.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "power/control_backends.hpp"
#include "power/idle_power.hpp"
#include "power/sensor_semantics.hpp"
#include "power/temperature_coefficient.hpp"

namespace ergotune {
namespace {

using testing::HasSubstr;

struct KeptValues : testing::Test {
  control_trees::Tree place;
  SensorInfo info;
  void SetUp() override {
    setenv("ERGOTUNE_DATA_DIR", place.root().c_str(), 1);
    std::filesystem::create_directories(place.root() / "calibration");
    info.id = "nvml:0/energy";
    info.uuid = "GPU-12/ab";
    info.driver = "550";
  }
  void stored(const std::string& text) const { std::ofstream(calibration_file(info)) << text; }
};

TEST_F(KeptValues, LieUnderTheBoardsName) {
  EXPECT_EQ(calibration_file(info), place.root() / "calibration" / "GPU-12_ab.json");
  EXPECT_EQ(sensor_role(info), "energy");
  info.uuid.clear();
  EXPECT_EQ(calibration_file(info).filename(), "nvml_0_energy.json");
  EXPECT_EQ(sensor_role(info), "nvml:0/energy");
  info.pci_address = "0000:03:00.0";
  EXPECT_EQ(calibration_file(info).filename(), "0000_03_00.0.json");
  EXPECT_EQ(sensor_role(info), "energy");
}

TEST_F(KeptValues, TheTemperatureCoefficientComesBack) {
  EXPECT_FALSE(kept_temperature_coefficient(info));
  const auto file = keep_temperature_coefficient(info, {0.5, 0.125, 40, 70});
  EXPECT_EQ(file.filename(), "GPU-12_ab.temperature.json");
  const auto kept = kept_temperature_coefficient(info);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->watts_per_degree, 0.5);
  EXPECT_EQ(kept->standard_error, 0.125);
  EXPECT_EQ(kept->coolest, 40);
  EXPECT_EQ(kept->hottest, 70);
  keep_temperature_coefficient(info, {-0.5, 0, 40, 70});
  EXPECT_EQ(kept_temperature_coefficient(info)->watts_per_degree, -0.5);
  keep_temperature_coefficient(info, {0.5, -1, 40, 70});
  EXPECT_FALSE(kept_temperature_coefficient(info)) << "no error is negative";
  keep_temperature_coefficient(info, {0.5, 0.125, 40, 70});
  info.driver = "551";
  EXPECT_FALSE(kept_temperature_coefficient(info));
  std::ofstream(file) << "{";
  EXPECT_FALSE(kept_temperature_coefficient(info));
}

TEST_F(KeptValues, IdlePowerIsTheCalibrations) {
  EXPECT_FALSE(calibrated_idle_power(info));
  const auto with = [&](const std::string& idle) {
    stored(R"({"driver": "550", "sensors": {"energy": {"idle_power": )" + idle + "}}}");
  };
  with(R"({"value": 20, "low": 18.04, "high": 21.96})");
  const auto idle = calibrated_idle_power(info);
  ASSERT_TRUE(idle);
  EXPECT_EQ(idle->watts, 20);
  EXPECT_NEAR(idle->standard_error, 1, 1e-9);
  with(R"({"value": 20, "low": 20, "high": 20})");
  EXPECT_EQ(calibrated_idle_power(info)->standard_error, 0);
  for (const char* none : {R"({"value": 0, "low": 0, "high": 1})", R"({"value": 20, "low": 21, "high": 20})",
                           R"({"value": 20})", "3"}) {
    with(none);
    EXPECT_FALSE(calibrated_idle_power(info)) << none;
  }
  with(R"({"value": 0.5, "low": 0.4, "high": 0.6})");
  EXPECT_TRUE(calibrated_idle_power(info)) << "as little as it may be";
  stored("{");
  EXPECT_FALSE(calibrated_idle_power(info));
  with(R"({"value": 20, "low": 18, "high": 22})");
  info.driver = "551";
  EXPECT_FALSE(calibrated_idle_power(info));
}

TEST_F(KeptValues, ACalibrationMaySayLittle) {
  const auto with = [&](const std::string& entry) {
    info.gain = 1;
    info.gain_error = 0.25;
    info.offset = 7;
    info.window = 9;
    stored(R"({"driver": "550", "sensors": {"energy": )" + entry + "}}");
    EXPECT_TRUE(apply_stored_calibration(info)) << entry;
  };
  for (const char* entry : {"{}", R"({"meter": 3})", R"({"meter": {}})", R"({"window": {"low": 1}})", R"({"meter": {"gain": "two"}})"}) {
    with(entry);
    EXPECT_EQ(info.gain, 1) << entry;
    EXPECT_EQ(info.gain_error, 0.25) << entry;
    EXPECT_EQ(info.offset, 7) << entry;
    EXPECT_EQ(info.window, 9) << entry;
  }
  with(R"({"meter": {"gain": 2}})");
  EXPECT_EQ(info.gain, 2);
  EXPECT_EQ(info.gain_error, 0.25) << "a number alone leaves that open";
  with(R"({"meter": {"gain": {"value": 0.5, "low": 0.402, "high": 0.598}}})");
  EXPECT_NEAR(info.gain_error, 0.1, 1e-9);
  with(R"({"meter": {"gain": {"value": 0, "low": -1, "high": 1}}})");
  EXPECT_EQ(info.gain_error, 0.25) << "a gain of nothing has no share";
  for (const char* name : {"ERGOTUNE_DATA_DIR", "XDG_DATA_HOME", "HOME"}) unsetenv(name);
  EXPECT_FALSE(apply_stored_calibration(info)) << "there is no place";
  EXPECT_FALSE(calibrated_idle_power(info));
}

TEST_F(KeptValues, ACalibrationSaysWhatItSays) {
  EXPECT_FALSE(apply_stored_calibration(info));
  stored(
      R"({"driver": "550", "sensors": {"energy": {"kind": "exponential_power", "update_period": 0.1, "window": {"value": 0.2}, "lag": -1, "read_cost": 0.4, "unit_step": 0.5,
    "repeatability": 0, "meter": {"gain": {"value": 2, "low": 1.804, "high": 2.196}, "offset": 7, "level": 3, "level_error": 4}}}})");
  info.lag = 0.3;
  info.repeatability = 9;
  ASSERT_TRUE(apply_stored_calibration(info));
  EXPECT_EQ(info.kind, SensorKind::exponential_power);
  EXPECT_EQ(info.update_period, 0.1);
  EXPECT_EQ(info.window, 0.2);
  EXPECT_EQ(info.lag, 0.3) << "no lag is negative";
  EXPECT_EQ(info.read_cost, 0.4);
  EXPECT_EQ(info.unit_step, 0.5);
  EXPECT_EQ(info.repeatability, 0);
  EXPECT_EQ(info.gain, 2);
  EXPECT_EQ(info.offset, 7);
  EXPECT_NEAR(info.gain_error, 0.05, 1e-9);
  EXPECT_EQ(info.level, 3);
  EXPECT_EQ(info.level_error, 4);
  EXPECT_TRUE(info.calibrated);
  for (const char* none :
       {"", "[]", R"({"driver": "551"})", R"({"driver": "550"})", R"({"driver": "550", "sensors": 3})",
        R"({"driver": "550", "sensors": {"power": {}}})", R"({"driver": "550", "sensors": {"energy": 3}})"}) {
    stored(none);
    EXPECT_FALSE(apply_stored_calibration(info)) << none;
  }
}

TEST(ControlRanges, TakeWhatIsThere) {
  ControlRange list;
  list.supported = true;
  list.values = {600, 900, 1200};
  const auto core = ControlQuantity::core_clock_mhz;
  EXPECT_EQ(nearest_value(list, 700), 600);
  EXPECT_EQ(nearest_value(list, 800), 900);
  EXPECT_EQ(nearest_value(list, 750), 600) << "the lower of two that are as near";
  EXPECT_EQ(nearest_value(list, 5000), 1200);
  EXPECT_EQ(check_value(core, list, 900.4).status, ControlStatus::ok);
  EXPECT_EQ(check_value(core, list, 899.5).status, ControlStatus::invalid_value);
  EXPECT_EQ(check_value(core, list, 700).message,
            "core clock 700 MHz: not supported; nearest is 600 MHz (of 3 from 600 to 1200)");
  ControlRange span;
  span.supported = true;
  span.low = 100;
  span.high = 250;
  const auto watts = ControlQuantity::power_limit_w;
  EXPECT_EQ(nearest_value(span, 90), 100);
  EXPECT_EQ(nearest_value(span, 300), 250);
  EXPECT_EQ(nearest_value(span, 120), 120);
  for (const double good : {100.0, 175.0, 250.0})
    EXPECT_EQ(check_value(watts, span, good).status, ControlStatus::ok) << good;
  for (const double bad : {99.0, 251.0})
    EXPECT_EQ(check_value(watts, span, bad).status, ControlStatus::invalid_value) << bad;
  EXPECT_EQ(check_value(watts, span, 251).message, "power limit 251 W: outside 100 to 250 W");
  EXPECT_THAT(check_value(watts, span, NAN).message, HasSubstr("not a finite number"));
  span.supported = false;
  span.why_not = "old driver";
  EXPECT_EQ(check_value(watts, span, 150).status, ControlStatus::not_supported);
  EXPECT_EQ(check_value(watts, span, 150).message, "power limit cannot be set on this device: old driver");
  EXPECT_EQ(changed_meanwhile(core, 900, 600).message, "core clock 900 MHz was set, but it is 600 MHz");
}

TEST(ClockOutcome, ToleratesAShareOrHalfAStep) {
  EXPECT_TRUE(same_clock(1000, 1010, 0.01));
  EXPECT_FALSE(same_clock(1000, 1011, 0.01));
  EXPECT_TRUE(same_clock(1000, 990, 0.01));
  EXPECT_FALSE(same_clock(1000, 989, 0.01));
  EXPECT_TRUE(same_clock(300, 307.5, 0.01));
  EXPECT_FALSE(same_clock(300, 308, 0.01));
  EXPECT_EQ(describe_clock_outcome(0, 900, {}), "");
  EXPECT_EQ(describe_clock_outcome(1, 900, {}), "asked 1 MHz, ran 900 MHz");
  EXPECT_EQ(describe_clock_outcome(900, NAN, {}), "");
  EXPECT_EQ(describe_clock_outcome(900, 1200, {"power_cap"}), "asked 900 MHz, ran 1200 MHz")
      << "a cap makes nothing faster";
  EXPECT_EQ(describe_clock_outcome(1200, 900, {"power_cap", "thermal_slowdown"}),
            "asked 1200 MHz, ran 900 MHz, power cap, thermal slowdown");
}

}  // namespace
}  // namespace ergotune
