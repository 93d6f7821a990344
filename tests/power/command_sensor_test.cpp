#include "power/sensors/sensor_family.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/clock.hpp"
#include "base/process/process.hpp"
#include "ergotune/error.hpp"
#include "power/guardian/journal.hpp"
#include "power/sensors/sensor.hpp"
#include "temporary_folder.hpp"

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

// The wall clock is set an hour on while a meter that stamps by it runs. Runs itself below tests/fakes/faults, where it
// is.
TEST(CommandSensor, GoesOnWhenTheWallClockIsSet) {
  if (!::getenv("ERGOTUNE_FAULT")) {
    ProcessOptions options;
    options.environment = {{"LD_PRELOAD", ERGOTUNE_BINARY_DIR "/tests/fakes/faults/faults.so"},
                           {"ERGOTUNE_FAULT", "call=clock,nth=60,error=3600"}};
    options.timeout = 60;
    const auto result =
        run_process({own_program(), "--gtest_filter=CommandSensor.GoesOnWhenTheWallClockIsSet"}, options);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return;
  }
  const TemporaryFolder folder;
  const auto set = folder.path() / "set";
  auto sensor =
      open_sensor(fmt::format("command:unset LD_PRELOAD; while sleep 0.02; do if [ -e {} ]; then echo $(($(date +%s) + "
                              "3600)) 100; else echo $(date +%s) 100; fi; done",
                              set.string()));
  const double offset = wall_seconds() - host_seconds();
  ASSERT_EQ(collect(*sensor, 1).size(), 1u);
  while (wall_seconds() - host_seconds() < offset + 1000) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::ofstream(set) << "now";
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  collect(*sensor, 1);
  const auto readings = collect(*sensor, 3);
  ASSERT_GE(readings.size(), 3u);
  EXPECT_NEAR(readings.back().time, host_seconds(), 5);
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
