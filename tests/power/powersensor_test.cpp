// PowerSensor 3 and 2: their streams byte by byte, and whole devices on a pseudo-terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ergotune/error.hpp"
#include "error_of.hpp"
#include "fakes/powersensor/fake_powersensor.hpp"
#include "fakes/sysfs_trees/sysfs_trees.hpp"
#include "patience.hpp"
#include "power/powersensor/powersensor.hpp"

using namespace ergotune;
using namespace ergotune::test;
using testing::HasSubstr;

namespace {

using Bytes = std::vector<unsigned char>;

void item3(unsigned id, unsigned level, bool flag, Bytes& out) {
  out.push_back(static_cast<unsigned char>(0x80 | id << 4 | (level >> 6 & 15)));
  out.push_back(static_cast<unsigned char>((flag ? 0x40 : 0) | (level & 63)));
}

/// A frame at `microseconds` with every channel at `level`.
Bytes frame3(unsigned microseconds, unsigned level, bool marker = false) {
  Bytes bytes;
  item3(7, microseconds & 1023, true, bytes);
  for (unsigned id = 0; id < 8; ++id) item3(id, level, id == 0 && marker, bytes);
  return bytes;
}

/// 1 W at level 310 on one pair: 1 V and 1 A.
Powersensor3Decoder one_pair() {
  Powersensor3Decoder::Channels channels{};
  channels[0] = {0, 1, true};
  channels[1] = {0, 1, true};
  return Powersensor3Decoder(channels);
}

TEST(Powersensor3Stream, FramesBecomeWattsAtTheirTimes) {
  auto decoder = one_pair();
  std::vector<Powersensor3Decoder::Sample> samples;
  for (unsigned t = 1000; t < 1400; t += 50) decoder.feed(frame3(t, 310, t == 1100), samples);
  ASSERT_EQ(samples.size(), 8u);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_NEAR(samples[i].device_seconds, static_cast<double>(i) * 50e-6, 1e-12) << "through the wrap at 1024 us";
    EXPECT_NEAR(samples[i].watts, 1.0, 1e-9);
  }
}

TEST(Powersensor3Stream, PiecesOfAnySizeGiveTheSame) {
  Bytes all;
  for (unsigned t = 0; t < 5000; t += 50) {
    const auto frame = frame3(t, 200 + t / 50, t == 2500);
    all.insert(all.end(), frame.begin(), frame.end());
  }
  auto whole = one_pair();
  std::vector<Powersensor3Decoder::Sample> expected;
  whole.feed(all, expected);
  for (const std::size_t size : {1, 2, 3, 7, 17, 18, 19, 100}) {
    auto decoder = one_pair();
    std::vector<Powersensor3Decoder::Sample> samples;
    for (std::size_t at = 0; at < all.size(); at += size)
      decoder.feed(std::span(all).subspan(at, std::min(size, all.size() - at)), samples);
    ASSERT_EQ(samples.size(), expected.size()) << size;
    for (std::size_t i = 0; i < samples.size(); ++i) EXPECT_EQ(samples[i].watts, expected[i].watts);
  }
}

TEST(Powersensor3Stream, AnyLostByteCostsAtMostTwoFrames) {
  const unsigned kFrames = 10;
  for (std::size_t lost = 0; lost < 18; ++lost) {
    auto decoder = one_pair();
    std::vector<Powersensor3Decoder::Sample> samples;
    for (unsigned i = 0; i < kFrames; ++i) {
      auto bytes = frame3(i * 50, 310);
      if (i == 4) bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(lost));
      decoder.feed(bytes, samples);
    }
    EXPECT_GE(samples.size(), kFrames - 2) << "byte " << lost;
    for (const auto& sample : samples) EXPECT_NEAR(sample.watts, 1.0, 1e-9) << "byte " << lost;
    EXPECT_NEAR(samples.back().device_seconds, 450e-6, 1e-12) << "byte " << lost;
  }
}

TEST(ClockAnchor, SpacesByTheDeviceAndPlacesByThePromptestByte) {
  ClockAnchor anchor;
  Random random(3);
  double worst = 0;
  for (int i = 0; i < 40000; ++i) {
    const double device = i * 50e-6, truth = 1000 + device * 1.0001;  // a clock 100 ppm slow
    const double delay = random.chance(0.02) ? 1e-5 : 3e-3 * random.uniform();
    const double time = anchor.host_time(device, truth + delay);
    if (i > 10000) worst = std::max(worst, std::abs(time - truth));
  }
  EXPECT_LT(worst, 1e-4);
}

TEST(Powersensor2Stream, ItemsBecomeWattsAndBytesMayGetLost) {
  Powersensor2Decoder::Sensors sensors{};
  sensors[1] = {12, 0.06f, 1.5f};
  const unsigned level = 600;
  const double watts = (600.0 - 512) * (2.5 / 512 * 12 / 0.06) - 1.5;
  Bytes all;
  for (int set = 0; set < 3; ++set)
    for (unsigned id = 0; id < 5; ++id) {
      all.push_back(static_cast<unsigned char>(id << 5 | (level >> 5)));
      all.push_back(static_cast<unsigned char>(0xE0 | (level & 31)));
    }
  for (std::size_t lost = 0; lost <= 10; ++lost) {
    Bytes bytes = all;
    if (lost < 10) bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(lost));
    Powersensor2Decoder decoder(sensors);
    std::vector<Powersensor2Decoder::Sample> samples;
    for (const auto byte : bytes) decoder.feed(std::span(&byte, 1), samples);
    EXPECT_GE(samples.size(), 2u);
    for (const auto& sample : samples) {
      EXPECT_EQ(sample.sensor, 1u);
      EXPECT_NEAR(sample.watts, watts, 1e-4);
    }
  }
}

// Whole devices
// -------------------------------------------------------------------------------------------------

/// Energy over the last part of `seconds` against the curve.
void watch_energy(Sensor& sensor, const PowerCurve& curve, double seconds = 1.2) {
  const double end = host_seconds() + seconds;
  std::vector<Reading> readings;
  while (host_seconds() < end) {
    sensor.read(readings);
    usleep(10000);
  }
  // the first window of the clock's anchor is still settling
  std::erase_if(readings, [&](const Reading& r) { return r.time < end - seconds + 0.4; });
  ASSERT_GT(readings.size(), 100u);
  const double truth = curve.energy(readings.front().time, readings.back().time);
  EXPECT_NEAR((readings.back().value - readings.front().value) / truth, 1, 0.01);
  for (std::size_t i = 1; i < readings.size(); ++i) {
    ASSERT_GT(readings[i].time, readings[i - 1].time);
    ASSERT_GE(readings[i].value, readings[i - 1].value);
  }
}

FakePowersensorOptions with_curve(const PowerCurve& curve) {
  FakePowersensorOptions options;
  options.power = [curve](double t) { return curve.power(t); };
  return options;
}

const PowerCurve kCurve{150, 60, 0.1};

/// A fake's stream comes from a thread in real time: what reaches the line late is late on every clock there is.
template <class Device, class Open>
void expect_true_energy(const FakePowersensorOptions& options, const PowerCurve& curve, Open open) {
  with_patience("the thread that plays the device may not have been run for a while", [&] {
    Device device(options);
    watch_energy(*open(device.path()), curve);
  });
}
void expect_true_energy3(const FakePowersensorOptions& options, const PowerCurve& curve) {
  expect_true_energy<FakePowersensor3>(options, curve, open_powersensor3);
}
void expect_true_energy2(const FakePowersensorOptions& options, const PowerCurve& curve) {
  expect_true_energy<FakePowersensor2>(options, curve, open_powersensor2);
}

TEST(QuietPowersensor3, EnergyIsTrue) {
  expect_true_energy<FakePowersensor3>(with_curve(kCurve), kCurve,
                                       [](const std::string& path) { return open_sensor("powersensor3:" + path); });
}

TEST(QuietPowersensor3, EnergyIsTrueWithLostBytes) {
  auto options = with_curve(kCurve);
  options.loss = 0.002;  // three frames in a hundred
  expect_true_energy3(options, kCurve);
}

TEST(QuietPowersensor3, EnergyIsTrueWithOutagesBeyondTheStampsWrap) {
  auto options = with_curve(PowerCurve{150, 0, 0.1});  // nobody knows what the power did in between
  options.outage = 0.02;
  expect_true_energy3(options, PowerCurve{150, 0, 0.1});
}

TEST(QuietPowersensor3, EnergyIsTrueWithAClockThatRunsWrong) {
  auto options = with_curve(kCurve);
  options.clock_error = 3e-3;
  expect_true_energy3(options, kCurve);
}

TEST(Powersensor3, PullingThePlugIsAFailureInWords) {
  FakePowersensor3 device(with_curve(kCurve));
  const auto sensor = open_powersensor3(device.path());
  std::vector<Reading> out;
  ReadStatus status = ReadStatus::ok;
  for (int i = 0; i < 500 && out.empty(); ++i) {
    usleep(10000);
    status = sensor->read(out);
  }
  out.clear();
  usleep(100000);
  device.unplug();
  for (int i = 0; i < 500 && status != ReadStatus::failed; ++i) {
    usleep(10000);
    status = sensor->read(out);
  }
  EXPECT_EQ(status, ReadStatus::failed);
  EXPECT_THAT(sensor->last_error(), HasSubstr("disconnected"));
  EXPECT_FALSE(out.empty()) << "what came before is kept";
}

TEST(Powersensor3, ALineIsUsedByOneProgramOnly) {
  FakePowersensor3 device;
  const auto sensor = open_powersensor3(device.path());
  EXPECT_THAT(error_of([&] { open_powersensor3(device.path()); }), HasSubstr("in use"));
}

TEST(Powersensor3, TheStreamStopsWithTheSensor) {
  FakePowersensor3 device;
  EXPECT_EQ(open_powersensor3(device.path())->info().id, "powersensor3:" + device.path());
  for (int i = 0; i < 500 && device.streaming(); ++i) usleep(10000);
  EXPECT_FALSE(device.streaming());
  open_powersensor3(device.path());  // and can be opened again
}

TEST(Powersensor3, SomethingElseOnTheLineIsRefused) {
  FakePowersensorOptions silent;
  silent.answers = false;
  FakePowersensor3 device(silent);
  EXPECT_THROW(open_powersensor3(device.path()), UserError);
  FakePowersensorOptions unconfigured;
  unconfigured.channels_in_use = false;
  FakePowersensor3 other(unconfigured);
  EXPECT_THAT(error_of([&] { open_powersensor3(other.path()); }), HasSubstr("configure"));
  EXPECT_THROW(open_powersensor3("/dev/null"), UserError);
  EXPECT_THROW(open_powersensor3("/no/such/device"), UserError);
}

TEST(QuietPowersensor2, EnergyIsTrue) {
  expect_true_energy<FakePowersensor2>(with_curve(kCurve), kCurve,
                                       [](const std::string& path) { return open_sensor("powersensor2:" + path); });
}

TEST(QuietPowersensor2, EnergyIsTrueWithLostBytes) {
  auto options = with_curve(kCurve);
  options.loss = 0.01;
  expect_true_energy2(options, kCurve);
}

TEST(Powersensor2, SomethingElseOnTheLineIsRefused) {
  FakePowersensorOptions silent;
  silent.answers = false;
  FakePowersensor2 device(silent);
  EXPECT_THROW(open_powersensor2(device.path()), UserError);
}

}  // namespace
