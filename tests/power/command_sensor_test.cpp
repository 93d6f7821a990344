#include "power/command_sensor.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/process.hpp"
#include "ergotune/base/clock.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/power/sensor.hpp"
#include "power/journal.hpp"

namespace ergotune {
namespace {

std::vector<Reading> collect(Sensor& sensor, std::size_t wanted, ReadStatus* last = nullptr) {
  std::vector<Reading> out;
  const double end = host_seconds() + 5;
  ReadStatus status = ReadStatus::no_new_data;
  while (out.size() < wanted && host_seconds() < end && status != ReadStatus::failed) {
    status = sensor.read(out);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (last) *last = status;
  return out;
}

TEST(CommandLineOfASensor, Forms) {
  for (const char* line : {"12.5 300", "12.5,300", "12.5\t300 W\r", "12.5;300", "12.5, 300\t", "12.5 300;"}) {
    const auto parsed = parse_command_line(line);
    ASSERT_TRUE(parsed) << line;
    EXPECT_EQ(parsed->watts, 300) << line;
    EXPECT_EQ(parsed->time, 12.5) << line;
  }
  const auto alone = parse_command_line("42.5 W");
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->watts, 42.5);
  EXPECT_FALSE(alone->time);
  for (const char* nonsense : {"", "time watts", "1 2 3", "nan nan", "1 inf", "1 2x"})
    EXPECT_FALSE(parse_command_line(nonsense)) << nonsense;
}

TEST(CommandSensor, ReadsWattsFromAProgramOfItsOwnClock) {
  auto sensor = open_sensor("command:for i in 1 2 3 4 5; do echo \"$i.0 $((100 + i))\"; done; sleep 60");
  const double before = host_seconds();
  const auto readings = collect(*sensor, 5);
  ASSERT_EQ(readings.size(), 5u);
  EXPECT_EQ(readings[0].value, 101);
  EXPECT_EQ(readings[4].value, 105);
  EXPECT_NEAR(readings[4].time - readings[3].time, 1.0, 1e-6);
  // Nothing is put into the future: the last line is the youngest.
  EXPECT_LE(readings[4].time, host_seconds());
  (void)before;
}

TEST(CommandSensor, KeepsOutWhatIsNoPowerAndSaysWhenTheProgramEnds) {
  auto sensor = open_sensor("command:printf '# seconds watts\\nrubbish\\n1 0\\n2 -5\\n3 nan\\n4 77\\n'");
  ReadStatus status{};
  const auto readings = collect(*sensor, 2, &status);
  ASSERT_EQ(readings.size(), 1u);
  EXPECT_EQ(readings[0].value, 77);
  EXPECT_EQ(status, ReadStatus::failed);
  EXPECT_THAT(sensor->last_error(), testing::HasSubstr("has ended"));
}

TEST(CommandSensor, SaysOnceWhyTheProgramEnded) {
  for (const auto& [command, words] : {std::pair<const char*, const char*>{"./nothere 2>/dev/null", "no such program"},
                                       {"exit 3", "exit code 3"},
                                       {"kill -9 $$", "signal 9"}}) {
    auto sensor = open_sensor(std::string("command:") + command);
    ReadStatus status{};
    collect(*sensor, 1, &status);
    EXPECT_EQ(status, ReadStatus::failed);
    const std::string first = sensor->last_error();
    EXPECT_THAT(first, testing::HasSubstr(words));
    for (int i = 0; i < 20; ++i) collect(*sensor, 1);
    EXPECT_EQ(sensor->last_error(), first) << "however often it is asked";
  }
}

// The wall clock is set an hour on while a meter that stamps by it runs. Runs itself below tests/fakes/faults, where it is.
TEST(CommandSensor, GoesOnWhenTheWallClockIsSet) {
  if (!::getenv("ERGOTUNE_FAULT")) {
    ProcessOptions options;
    options.environment = {{"LD_PRELOAD", ERGOTUNE_BINARY_DIR "/tests/fakes/faults/faults.so"}, {"ERGOTUNE_FAULT", "call=clock,nth=60,error=3600"}};
    options.timeout = 60;
    const auto result = run_process({own_program(), "--gtest_filter=CommandSensor.GoesOnWhenTheWallClockIsSet"}, options);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return;
  }
  const auto set = std::filesystem::temp_directory_path() / fmt::format("ergotune-clock-{}", ::getpid());
  auto sensor = open_sensor(fmt::format("command:unset LD_PRELOAD; while sleep 0.02; do if [ -e {} ]; then echo $(($(date +%s) + 3600)) 100; "
                                        "else echo $(date +%s) 100; fi; done", set.string()));
  const double offset = wall_seconds() - host_seconds();
  ASSERT_EQ(collect(*sensor, 1).size(), 1u);
  while (wall_seconds() - host_seconds() < offset + 1000) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::ofstream(set) << "now";
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  collect(*sensor, 1);
  const auto readings = collect(*sensor, 3);
  std::filesystem::remove(set);
  ASSERT_GE(readings.size(), 3u);
  EXPECT_NEAR(readings.back().time, host_seconds(), 5);
}

// Lines can only come late: what stands between two of them is what their own clock says, whenever they come.
TEST(CommandSensor, ALateLineStandsWhereItsClockSays) {
  const auto sensor = open_sensor("command:echo 10 100; sleep 0.05; echo 10.001 100; sleep 60");
  const auto readings = collect(*sensor, 2);
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_NEAR(readings[1].time - readings[0].time, 0.001, 1e-6);
}

TEST(CommandSensor, NeedsAProgram) {
  EXPECT_THROW(open_sensor("command:"), UserError);
  EXPECT_THROW(open_sensor("command"), UserError);
  EXPECT_NO_THROW(open_sensor("command::")) << "the shell's own";
}

/// The reading of a line of this time.
Reading at(double time) {
  const auto readings = collect(*open_sensor(fmt::format("command:echo {:.6f} 100; sleep 60", time)), 1);
  return readings.empty() ? Reading{} : readings.front();
}

TEST(CommandSensor, TimesOfOurClockAndOfTheWallsStandOthersAreThoseOfTheirArrival) {
  const double begin = host_seconds(), offset = wall_seconds() - begin;
  EXPECT_NEAR(at(begin - 2).time, begin - 2, 1e-3);
  EXPECT_NEAR(at(wall_seconds() - 2).time + offset, wall_seconds() - 2, 1.5);
  EXPECT_LT(at(wall_seconds() - 2).time + offset, wall_seconds() - 1.9);
  for (const double foreign : {host_seconds() - 5.5, host_seconds() + 3600, 12.0, wall_seconds() - 5.5}) {
    const double before = host_seconds(), time = at(foreign).time;
    EXPECT_GE(time, before) << foreign;
    EXPECT_LE(time, host_seconds()) << foreign;
  }
}

TEST(CommandSensor, ALineMayComeInPiecesAndIsCorrected) {
  const auto sensor = open_sensor("command:printf '0.5\\n12'; sleep 0.05; printf '3\\n'; sleep 60");
  SensorInfo info = sensor->info();
  info.gain = 2;
  info.offset = 3;
  sensor->set_info(info);
  const double before = host_seconds();
  const auto readings = collect(*sensor, 2);
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_EQ(readings[0].value, 4);
  EXPECT_EQ(readings[1].value, 249);
  EXPECT_GE(readings[1].time, before);
  EXPECT_LE(readings[1].time, host_seconds());
}

TEST(CommandSensor, ALetterMayComeAlone) {
  const auto sensor = open_sensor("command:printf 1; sleep 0.05; printf '23\\n'; sleep 60");
  const auto readings = collect(*sensor, 1);
  ASSERT_EQ(readings.size(), 1u);
  EXPECT_EQ(readings[0].value, 123);
}

TEST(CommandSensor, SaysWhatWasNoPowerButNotACommentsWords) {
  const auto said = [](const std::string& command) {
    const auto sensor = open_sensor("command:" + command);
    collect(*sensor, 1);
    return sensor->last_error();
  };
  EXPECT_THAT(said("echo rubbish"), testing::HasSubstr("not \"seconds watts\": rubbish"));
  EXPECT_THAT(said("echo 0"), testing::HasSubstr("left out a reading of 0 W"));
  EXPECT_EQ(said("echo '# seconds watts'; echo"), "the sensor program has ended with exit code 0");
  EXPECT_EQ(said("/dev/null 2>/dev/null"), "the sensor program has ended with exit code 126: it cannot be executed");
  EXPECT_EQ(said("exec >&-; sleep 60"), "the sensor program has closed its output");
}

TEST(CommandSensor, TakesItsProgramAndWhatThatStartedWithIt) {
  auto sensor = open_sensor("command:echo $$; sleep 60 & echo $!; wait");
  const auto readings = collect(*sensor, 2);
  ASSERT_EQ(readings.size(), 2u);
  const auto program = static_cast<pid_t>(readings[0].value), child = static_cast<pid_t>(readings[1].value);
  EXPECT_EQ(::kill(child, 0), 0);
  sensor.reset();
  EXPECT_NE(::kill(program, 0), 0) << "it was reaped";
  for (int look = 0; look < 3000 && process_alive(child, process_start_ticks(child)); ++look) ::usleep(1000);
  EXPECT_FALSE(process_alive(child, process_start_ticks(child)));
}

}  // namespace
}  // namespace ergotune
