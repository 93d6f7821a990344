// The serial line, and whole PowerSensors of a steady power on a pseudo-terminal: then joules over seconds are its watts, whenever
// the thread that plays the device comes to run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>

#include "ergotune/base/error.hpp"
#include "fakes/powersensor/fake_powersensor.hpp"
#include "power/effective_user.hpp"
#include "power/powersensor.hpp"

using namespace ergotune;
using namespace ergotune::test;
using testing::HasSubstr;

namespace {

/// At least `wanted` readings of a sensor's.
std::vector<Reading> readings_of(Sensor& sensor, std::size_t wanted = 100) {
  std::vector<Reading> readings;
  for (int look = 0; look < 3000 && readings.size() < wanted; ++look) {
    sensor.read(readings);
    ::usleep(1000);
  }
  return readings;
}

double mean_power(const std::vector<Reading>& readings) {
  return (readings.back().value - readings.front().value) / (readings.back().time - readings.front().time);
}

template <class Device, class Open>
void expect_steady_power(Open open) {
  FakePowersensorOptions options;
  options.power = [](double) { return 120.0; };
  Device device(options);
  const double before = host_seconds();
  const auto sensor = open(device.path());
  const auto readings = readings_of(*sensor);
  ASSERT_GE(readings.size(), 100u);
  EXPECT_NEAR(mean_power(readings), 120, 3);
  EXPECT_GT(readings.front().time, before);
  EXPECT_LT(readings.back().time, host_seconds());
  for (std::size_t i = 1; i < readings.size(); ++i) EXPECT_GE(readings[i].time - readings[i - 1].time, 1e-3 - 1e-9);
  SensorInfo info = sensor->info();
  EXPECT_EQ(info.kind, SensorKind::cumulative_energy);
  EXPECT_EQ(info.update_period, 1e-3);
  info.gain = 2;
  sensor->set_info(info);
  EXPECT_NEAR(mean_power(readings_of(*sensor)), 240, 6) << "as its calibration corrects it";
  info.offset = 1e6;
  sensor->set_info(info);
  EXPECT_GT(readings_of(*sensor).front().value, 1e6);
}

TEST(Powersensor3Device, IntegratesItsPower) { expect_steady_power<FakePowersensor3>(open_powersensor3); }
TEST(Powersensor2Device, IntegratesTheSumOfItsSensors) { expect_steady_power<FakePowersensor2>(open_powersensor2); }

template <class Open>
std::string refusal(const std::string& path, Open open) {
  try {
    open(path);
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

TEST(Powersensor3Device, ConfigurationsThatGiveNoPowerAreRefused) {
  FakePowersensorOptions options;
  options.unscaled = 1;
  EXPECT_THAT(refusal(FakePowersensor3(options).path(), open_powersensor3), HasSubstr("sensitivity 0"));
  options.unscaled = 7;  // not in use
  EXPECT_EQ(refusal(FakePowersensor3(options).path(), open_powersensor3), "");
  for (const char end : {'X', 'd'}) {
    options.last_word = end;
    EXPECT_THAT(refusal(FakePowersensor3(options).path(), open_powersensor3), HasSubstr("does not end its configuration"));
  }
}

TEST(Powersensor2Device, ConfigurationsThatGiveNoPowerAreRefused) {
  FakePowersensorOptions options;
  options.unscaled = 1;
  EXPECT_THAT(refusal(FakePowersensor2(options).path(), open_powersensor2), HasSubstr("type 0"));
  options.channels_in_use = false;
  EXPECT_THAT(refusal(FakePowersensor2(options).path(), open_powersensor2), HasSubstr("no sensor in use"));
}

/// Both ends of a line.
struct SerialLine : testing::Test {
  int master = posix_openpt(O_RDWR | O_NOCTTY);
  std::string path;
  void SetUp() override {
    grantpt(master);
    unlockpt(master);
    path = ptsname(master);
  }
  void TearDown() override { ::close(master); }
  void say(const std::string& text) const { ASSERT_EQ(::write(master, text.data(), text.size()), static_cast<ssize_t>(text.size())); }
};

TEST_F(SerialLine, IsRawAndWholeBytes) {
  PowersensorPort port(path);
  termios line{};
  ASSERT_EQ(tcgetattr(master, &line), 0);
  EXPECT_EQ(line.c_cflag & CSIZE, static_cast<tcflag_t>(CS8));
  EXPECT_EQ(line.c_cflag & (PARENB | CSTOPB | CRTSCTS), 0u);
  EXPECT_EQ(line.c_lflag & (ECHO | ICANON | ISIG), 0u);
  EXPECT_EQ(line.c_cc[VMIN], 1);
  EXPECT_EQ(line.c_cc[VTIME], 0);
  port.write('S');
  char bytes[2]{};
  EXPECT_EQ(::read(master, bytes, sizeof bytes), 1);
  EXPECT_EQ(bytes[0], 'S');
}

TEST_F(SerialLine, WhatStandsInTheWayIsSaid) {
  const std::string missing = refusal("/no/such/line", open_powersensor3);
  EXPECT_THAT(missing, testing::AllOf(HasSubstr("cannot open /no/such/line"), testing::Not(HasSubstr("dialout"))));
  EXPECT_THAT(refusal("powersensor3:/no/such/line", open_sensor), HasSubstr("cannot open /no/such/line"));
  EXPECT_THAT(refusal("powersensor2:/no/such/line", open_sensor), HasSubstr("cannot open /no/such/line"));
  if (::access("/dev/ttyACM0", F_OK) != 0) {
    EXPECT_THAT(refusal("powersensor3", open_sensor), HasSubstr("cannot open /dev/ttyACM0"));
    EXPECT_THAT(refusal("powersensor2", open_sensor), HasSubstr("cannot open /dev/ttyACM0"));
  }
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  const EffectiveUser nobody;
  EXPECT_THAT(refusal(path, open_powersensor3), HasSubstr("be a member of its group"));
}

TEST_F(SerialLine, IsDrainedForAWhileThoughItNeverRests) {
  PowersensorPort port(path);
  std::atomic<bool> done = false;
  std::thread device([&] {
    while (!done) (void)!::write(master, "never", 5);
  });
  port.drain(0.001);
  done = true;
  std::array<unsigned char, 4096> bytes{};
  while (port.read_some(bytes, 0.05) > 0) {
  }
  device.join();
}

/// A PowerSensor 2 of one sensor that is played by hand.
struct PlayedPowersensor2 : SerialLine {
  std::unique_ptr<Powersensor> sensor;
  void SetUp() override {
    SerialLine::SetUp();
    std::thread device([this] {
      char asked = 0;
      while (asked != 'r' && ::read(master, &asked, 1) == 1) {
      }
      std::array<float, 15> memory{};
      memory[0] = 12;
      memory[1] = memory[4] = memory[7] = memory[10] = memory[13] = 1;
      say(std::string(reinterpret_cast<const char*>(memory.data()), sizeof memory));
    });
    sensor = open_powersensor2(path);
    device.join();
  }
  void TearDown() override {
    sensor.reset();
    SerialLine::TearDown();
  }
  std::vector<Reading> burst(int items, std::size_t wanted) {
    std::string bytes;
    for (int i = 0; i < items; ++i) bytes += "\x13\xe8";  // sensor 0, level 0x268
    say(bytes);
    return readings_of(*sensor, wanted);
  }
};

// No stamps: the samples of a burst were taken evenly since the last one.
TEST_F(PlayedPowersensor2, SpreadsABurst) {
  const double watts = (0x268 - 512) * 2.5 / 512 * 12;
  const auto first = burst(3, 1);
  ASSERT_EQ(first.size(), 1u) << "at one time";
  EXPECT_EQ(first[0].value, 0);
  ::usleep(50000);
  const auto second = burst(10, 10);
  ASSERT_EQ(second.size(), 10u);
  const double step = (second.back().time - first[0].time) / 10;
  EXPECT_GE(step, 0.005);
  for (std::size_t i = 0; i < second.size(); ++i) {
    EXPECT_NEAR(second[i].time - first[0].time, step * static_cast<double>(i + 1), 1e-6);
    EXPECT_NEAR(second[i].value, watts * step * static_cast<double>(i + 1), 1e-6);
  }
}

TEST_F(SerialLine, IsReadUntilThereIsEnoughOrTimeIsUp) {
  PowersensorPort port(path);
  std::array<unsigned char, 4> bytes{};
  EXPECT_EQ(port.read_some(bytes, 0), 0u);
  say("ab");
  EXPECT_EQ(port.read_some(bytes, 60), 2u);
  say("wxyz");
  EXPECT_TRUE(port.read_exactly(bytes, 60));
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "wxyz");
  say("ab");
  EXPECT_FALSE(port.read_exactly(bytes, 0.01));
  std::thread late([this] {
    ::usleep(20000);
    say("late");
  });
  EXPECT_EQ(port.read_some(bytes, 60), 4u) << "it waits as long as it is told";
  late.join();
  say("old");
  port.drain(0.01);
  EXPECT_EQ(port.read_some(bytes, 0), 0u) << "what was drained is gone";
}

TEST_F(SerialLine, TakesWhatDoesNotFitAtOnceAndSaysWhenItIsGone) {
  PowersensorPort port(path);
  const std::vector<unsigned char> much(200000, 'x');
  std::size_t taken = 0;
  std::thread reader([&] {
    char buffer[4096];
    while (taken < much.size()) {
      const ssize_t n = ::read(master, buffer, sizeof buffer);
      if (n <= 0) break;
      taken += static_cast<std::size_t>(n);
    }
  });
  port.write(much);
  reader.join();
  EXPECT_EQ(taken, much.size());
  ::close(master);
  master = -1;
  std::array<unsigned char, 4> bytes{};
  EXPECT_THROW(port.read_some(bytes, 60), Error);
  EXPECT_THROW(port.write('S'), Error);
}

}  // namespace
