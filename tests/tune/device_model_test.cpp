#include "tune/plans/device_model.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/clock.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

struct DeviceModels : ::testing::Test {
  const TemporaryFolder folder;
  DeviceModel model;
  void SetUp() override {
    setenv("ERGOTUNE_DATA_DIR", folder.path().c_str(), 1);
    model.of = {"GPU-1", "580.1"};
    model.made_at = wall_seconds();
    for (int f = 300; f <= 1500; f += 50) model.sampling.supported_mhz.push_back(f);
    for (int f = 300; f <= 1500; f += 150) {
      const double v = 1 + 0.001 * std::max(0, f - 900);
      PowerSample sample;
      sample.clock_mhz = f;
      sample.power_w = 50 + 0.2 * f * v * v;
      sample.power_error_w = 0.2;
      sample.voltage_v = 0.8 * v;
      model.sampling.samples.push_back(sample);
    }
    model.sampling.time_s.assign(model.sampling.samples.size(), 0.1);
    model.sampling.low_mhz = 300;
    model.sampling.high_mhz = 1500;
    model.model = fit_samples(model.sampling);
  }
  void TearDown() override { unsetenv("ERGOTUNE_DATA_DIR"); }
};

TEST_F(DeviceModels, WhatIsKeptIsTheSameFitAgain) {
  const auto file = store_device_model(model);
  EXPECT_EQ(file.parent_path().filename(), "calibration") << "beside the calibration";
  const StoredDeviceModel stored = load_device_model(model.of, model.sampling.supported_mhz);
  ASSERT_TRUE(stored.model) << stored.note;
  EXPECT_EQ(stored.note, "");
  EXPECT_NEAR(stored.model->model.ridge_mhz.value, model.model.ridge_mhz.value, 1e-6);
  EXPECT_NEAR(stored.model->model.ridge_mhz.low, model.model.ridge_mhz.low, 1e-6);
  EXPECT_TRUE(stored.model->model.voltage_measured);
  EXPECT_EQ(suggested_clocks(*stored.model), suggested_clocks(model));
}

TEST_F(DeviceModels, SuggestsTheGpusClocksAroundItsOptimum) {
  const auto clocks = suggested_clocks(model);
  ASSERT_GE(clocks.size(), 3u);
  EXPECT_GE(clocks.front(), 0.9 * 900 - 30);
  EXPECT_LE(clocks.back(), 1.1 * 900 + 30);
  EXPECT_NEAR(optimal_clock(model), 900, 51);
}

TEST_F(DeviceModels, ALoadThatRanElsewhereIsKnownByThePower) {
  EXPECT_EQ(load_error(model.sampling, 900), "");
  EXPECT_EQ(load_error(model.sampling, std::nullopt), "");
  EXPECT_NE(load_error(model.sampling, 5000), "") << "far below the limit";
  for (PowerSample& sample : model.sampling.samples) sample.power_w = 50 + 1e-3 * sample.clock_mhz;
  EXPECT_NE(load_error(model.sampling, std::nullopt), "") << "the same at every clock";
  EXPECT_NE(load_error(model.sampling, 100), "");
}

TEST_F(DeviceModels, AnotherDriverOrOtherClocksMakeItStale) {
  store_device_model(model);
  StoredDeviceModel stored = load_device_model({"GPU-1", "590.0"}, model.sampling.supported_mhz);
  EXPECT_FALSE(stored.model);
  EXPECT_NE(stored.note.find("stale"), std::string::npos) << stored.note;
  EXPECT_NE(stored.note.find("590.0"), std::string::npos) << stored.note;
  stored = load_device_model(model.of, {300, 600});
  EXPECT_FALSE(stored.model);
  EXPECT_NE(stored.note.find("stale"), std::string::npos) << stored.note;
  EXPECT_FALSE(load_device_model({"GPU-2", "580.1"}, {}).model);
  model.made_at -= 400 * 86400.0;
  store_device_model(model);
  stored = load_device_model(model.of, model.sampling.supported_mhz);
  EXPECT_TRUE(stored.model) << "an old one is used";
  EXPECT_NE(stored.note.find("400 days old"), std::string::npos) << stored.note;
}

TEST_F(DeviceModels, ADamagedFileIsMadeAnew) {
  const auto file = store_device_model(model);
  for (const char* text : {"", "{", "[]", "{\"board\": 1}", "{\"board\":\"GPU-1\",\"driver\":\"580.1\"}"}) {
    std::ofstream(file) << text;
    const StoredDeviceModel stored = load_device_model(model.of, {});
    EXPECT_FALSE(stored.model) << text;
    EXPECT_NE(stored.note, "") << text;
  }
}

}  // namespace
}  // namespace ergotune
