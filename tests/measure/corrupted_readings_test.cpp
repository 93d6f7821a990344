// Readings of an NVIDIA GPU that are wrong, through the whole path from the driver's library to the estimate: a
// status with words, or the right number from what is left, never a wrong one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "fakes/nvml/fake_nvml.hpp"
#include "measure/energy/energy.hpp"

namespace ergotune {
namespace {

using fake_nvml::Corruption;

struct Kind {
  const char* name;
  Corruption corruption;
  /// What is left is right.
  bool may_be_right = false;
};
struct Reader {
  const char *generation, *sensor, *function;
  std::vector<Kind> kinds;
};

const Kind kOnes{"all ones", Corruption::all_ones}, kZero{"zero", Corruption::zero}, kTiny{"tiny", Corruption::tiny},
    kSmall{"W for mW", Corruption::too_small}, kLarge{"uW for mW", Corruption::too_large},
    kFrozen{"frozen", Corruption::frozen}, kLater{"frozen later", Corruption::frozen_later},
    kBackwards{"backwards", Corruption::backwards}, kNan{"not a number", Corruption::not_a_number},
    kInfinite{"infinite", Corruption::infinite}, kDouble{"said to be a double", Corruption::as_double},
    kShort{"said to be short", Corruption::as_short}, kUnknown{"of no type", Corruption::as_unknown},
    kNegative{"negative", Corruption::negative}, kGarbage{"garbage above", Corruption::garbage_high},
    kJumping{"jumping", Corruption::jumping, true}, kAlternating{"alternating", Corruption::alternating, true},
    kNoStamp{"no time stamps", Corruption::stamps_zero}, kAllStamps{"time stamps all ones", Corruption::stamps_ones},
    kOldStamps{"time stamps of an hour ago", Corruption::stamps_old};

const std::vector<Reader>& readers() {
  static const std::vector<Reader> all{
      {"hopper",
       "nvml:0/energy",
       "nvmlDeviceGetTotalEnergyConsumption",
       {kOnes, kZero, kTiny, kSmall, kLarge, kFrozen, kLater, kBackwards, kJumping, kAlternating}},
      {"hopper",
       "nvml:0/instant",
       "field:186",
       {kOnes, kZero, kTiny, kSmall, kLarge, kFrozen, kLater, kNan, kInfinite, kDouble, kShort, kUnknown, kNegative,
        kGarbage, kJumping, kAlternating}},
      {"ampere",
       "nvml:0/average",
       "field:185",
       {kOnes, kZero, kTiny, kSmall, kLarge, kFrozen, kNan, kDouble, kShort, kNegative}},
      {"hopper",
       "nvml:0/samples",
       "nvmlDeviceGetSamples",
       {kOnes, kZero, kTiny, kSmall, kLarge, kFrozen, kNan, kDouble, kShort, kUnknown, kNegative, kAlternating,
        kNoStamp, kAllStamps, kOldStamps}},
      {"kepler", "nvml:0/instant", "nvmlDeviceGetPowerUsage", {kOnes, kZero, kTiny, kSmall, kLarge, kFrozen}},
  };
  return all;
}

/// A steady load on a GPU in virtual time, watched by sensors that are opened before anything goes wrong.
class Bench {
 public:
  Bench(const std::string& generation, const std::vector<std::string>& ids)
      : nvml_("virtual=1 generation=" + generation) {
    setenv("ERGOTUNE_DATA_DIR", "/nonexistent", 1);
    nvml_.use_here();
    nvml_.set_activity(0.6);
    nvml_.pass(2);
    for (const auto& id : ids) sensors_.push_back(open_sensor(id));
  }
  fake_nvml::FakeNvml& nvml() { return nvml_; }

  EnergyResult measure() {
    EnergyTrace trace;
    for (const auto& sensor : sensors_) {
      sensor->restart();
      trace.sensors.push_back({sensor->info(), {}, {}});
    }
    const double begin = nvml_.now(), wall = wall_seconds() - host_seconds();
    trace.stream.queued_at = begin;
    trace.settled_at = begin + 0.2;
    const double before = nvml_.true_energy();
    for (int i = 0; i < 800; ++i) {
      trace.stream.marks.push_back({nvml_.now(), 0, nvml_.now() - begin, static_cast<std::uint64_t>(4 * i)});
      nvml_.pass(0.004);
      for (std::size_t s = 0; s < sensors_.size(); ++s) {
        std::vector<Reading> fresh;
        const auto status = sensors_[s]->read(fresh);
        // Sensors stamp with the host's time; buffered samples come with the GPU's own.
        const bool stamped = sensors_[s]->info().id.ends_with("samples");
        for (Reading& reading : fresh) reading.time = stamped ? reading.time + wall : nvml_.now();
        auto& readings = trace.sensors[s].readings;
        readings.insert(readings.end(), fresh.begin(), fresh.end());
        if (status == ReadStatus::failed) trace.sensors[s].failure = sensors_[s]->last_error();
      }
    }
    truth_ = (nvml_.true_energy() - before) / (4 * 800);
    return estimate_energy(trace, {});
  }
  double truth() const { return truth_; }

 private:
  fake_nvml::FakeNvml nvml_;
  std::vector<std::unique_ptr<Sensor>> sensors_;
  double truth_ = 0;
};

TEST(CorruptedReadings, WithoutOneTheEnergyIsRight) {
  for (const Reader& reader : readers()) {
    Bench bench(reader.generation, {reader.sensor});
    const EnergyResult result = bench.measure();
    ASSERT_TRUE(usable(result.status)) << reader.sensor << ": " << result.message;
    EXPECT_NEAR(result.quantities.at("energy").value, bench.truth(), 0.02 * bench.truth()) << reader.sensor;
  }
}

TEST(CorruptedReadings, GiveAStatusNeverANumber) {
  int kinds = 0;
  for (const Reader& reader : readers()) {
    for (const Kind& kind : reader.kinds) {
      ++kinds;
      Bench bench(reader.generation, {reader.sensor});
      bench.nvml().corrupt(reader.function, kind.corruption, kind.corruption == Corruption::frozen_later ? 400 : 0);
      const EnergyResult result = bench.measure();
      const std::string what = std::string(reader.sensor) + ", " + kind.name;
      if (kind.may_be_right && usable(result.status)) {
        EXPECT_NEAR(result.quantities.at("energy").value, bench.truth(), 0.03 * bench.truth()) << what;
        continue;
      }
      EXPECT_EQ(result.status, Status::unsupported) << what;
      EXPECT_FALSE(result.quantities.contains("energy"))
          << what << ": " << result.quantities.at("energy").value << " J for " << bench.truth();
      EXPECT_GT(result.message.size(), 20u) << what << ": " << result.message;
    }
  }
  EXPECT_GE(kinds, 41);
}

TEST(CorruptedReadings, OfOneSensorDoNotSpoilTheOthers) {
  for (const Kind& kind : {kOnes, kZero, kFrozen, kDouble, kShort, kSmall}) {
    Bench bench("hopper", {"nvml:0/energy", "nvml:0/samples", "nvml:0/instant"});
    bench.nvml().corrupt("field:186", kind.corruption);
    const EnergyResult result = bench.measure();
    ASSERT_TRUE(usable(result.status)) << kind.name << ": " << result.message;
    EXPECT_NEAR(result.quantities.at("energy").value, bench.truth(), 0.02 * bench.truth()) << kind.name;
  }
}

TEST(CorruptedReadings, TwoSensorsThatContradictEachOtherAreBothNotBelieved) {
  Bench bench("hopper", {"nvml:0/energy", "nvml:0/instant"});
  bench.nvml().gpu().counter.gain = 0.5;
  const EnergyResult result = bench.measure();
  EXPECT_EQ(result.status, Status::unsupported);
  EXPECT_THAT(result.message, testing::HasSubstr("neither is credible"));
}

TEST(CorruptedReadings, AnIntervalThatCouldHoldAnythingIsNoResult) {
  // Power that swings so far that a second of it says nothing.
  Bench bench("hopper", {"nvml:0/energy"});
  bench.nvml().gpu().noise = 6;
  bench.nvml().gpu().noise_time = 1;
  const EnergyResult result = bench.measure();
  EXPECT_EQ(result.status, Status::unsupported) << result.quantities.at("energy").value << " +- " << result.half_width;
  EXPECT_FALSE(result.quantities.contains("energy"));
}

}  // namespace
}  // namespace ergotune
