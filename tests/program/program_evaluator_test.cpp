// Whole programs as an evaluator runs them: real programs of this system below a real supervisor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "error_of.hpp"
#include "program/program.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Programs : ::testing::Test {
  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
  LiveOptions options;
  EvaluationRequest request;

  void SetUp() override {
    options.cache_folder = folder / "cache";
    options.worker_command = {ERGOTUNE_BINARY_DIR "/ergotune", "worker"};
    options.measure.max_seconds = 0.02;
    options.measure.precision = 100;
    options.measure.min_repeats = 2;
    request.id = 1;
    request.configuration = {Value("right")};
    if (!std::filesystem::exists(options.worker_command[0])) GTEST_SKIP() << "the command is not built";
  }

  std::unique_ptr<ProgramEvaluator> evaluator(const std::string& program,
                                              std::vector<std::unique_ptr<Sensor>> sensors = {}) const {
    const Problem problem = parse_problem(
        "name = \"p\"\n[parameters]\nEND = [\"right\", \"wrong\"]\n[program]\n" + program, folder / "p.toml");
    return std::make_unique<ProgramEvaluator>(problem, Constants{}, DeviceInfo{}, options, std::move(sensors));
  }
  Measurement run(const std::string& program) const {
    const auto programs = evaluator(program);
    programs->submit(request);
    const auto result = programs->wait(60);
    return result ? result->measurement : Measurement{};
  }
  /// Why the session ends with it; empty where the configuration has a result, whatever it is.
  std::string why_it_ends(const std::string& program) const {
    return error_of([&] { (void)run(program); });
  }
};

// The best so far is a time that the program says; its processes take longer, or less.
TEST_F(Programs, RacingComparesTheTimeThatTheProgramSays) {
  options.measure.precision = 1e-12;
  request.give_up_above = 1e-4;
  EXPECT_THAT(run("command = ['date', '+time: 0.00000%N']\noutput = { time = 'time: (.*)' }").warnings,
              Not(Contains(HasSubstr("stopped early"))));
  options.measure.max_seconds = 0.3;
  request.give_up_above = 1e-6;
  EXPECT_THAT(run("command = ['date', '+time: 0.00001%N']\noutput = { time = 'time: (.*)' }").warnings,
              Contains(HasSubstr("stopped early")));
}

TEST_F(Programs, AllOfTheOutputIsCompared) {
  std::ofstream expected(folder / "expected");
  for (int i = 0; i < 440'000; ++i) expected << "some line\n";  // a little more than what is kept of other streams
  expected << "right\n";
  expected.close();
  const std::string prints = "command = ['sh', '-c', 'yes some line | head -n 440000; echo {{END}}']\n";
  const Measurement right = run(prints + "check = { reference = 'expected' }");
  EXPECT_EQ(right.status, Status::ok) << right.message;
  request.configuration = {Value("wrong")};
  const Measurement wrong = run(prints + "check = ['cmp', '{{run}}/stdout', '{{folder}}/expected']");
  EXPECT_EQ(wrong.status, Status::wrong_result);
  EXPECT_THAT(wrong.message, HasSubstr("line 440001"));
}

TEST_F(Programs, WhatNoConfigurationCanHelpEndsTheSession) {
  const std::string full = "['sh', '-c', 'echo \"cc: No space left on device\" >&2; exit 1']";
  EXPECT_THAT(why_it_ends("command = " + full), AllOf(HasSubstr("p.toml:4"), HasSubstr("the program has no room")));
  EXPECT_THAT(why_it_ends("command = ['true']\nbuild = " + full),
              AllOf(HasSubstr("the build has no room"), HasSubstr("make room")));
  EXPECT_THAT(why_it_ends("command = ['true']\nbuild = [['true'], ['no-such-compiler', 'x.c']]"),
              AllOf(HasSubstr("p.toml:4"), HasSubstr("build step 2 (no-such-compiler x.c) cannot be started")));
  for (const auto& entry : std::filesystem::directory_iterator(folder / "cache" / "builds"))
    EXPECT_FALSE(entry.is_directory()) << "a half build is left: " << entry.path();
  // What a step was to make is the configuration's own.
  const Measurement unmade = run("command = ['true']\nbuild = [['true'], ['./made-of-{{END}}']]");
  EXPECT_EQ(unmade.status, Status::compile_error) << unmade.message;
  EXPECT_EQ(run("command = ['true']\nbuild = [['true'], ['./made']]").status, Status::compile_error);
  EXPECT_EQ(run("command = ['true']\nbuild = [['{{END}}-compiler']]").status, Status::compile_error);
}

TEST_F(Programs, ABuildWithoutItsProgramFailsAndIsMadeAgain) {
  const std::string text =
      "command = ['{{build}}/made']\n"
      "build = ['sh', '-c', 'echo output of make; if test -e {{folder}}/source; then cp /bin/true made; fi']";
  const Measurement unmade = run(text);
  EXPECT_EQ(unmade.status, Status::compile_error);
  EXPECT_THAT(unmade.message, AllOf(HasSubstr("/made"), HasSubstr("output of make")));
  std::ofstream(folder / "source") << "";
  const Measurement made = run(text);
  EXPECT_EQ(made.status, Status::ok) << made.message;
  EXPECT_EQ(run(text).compile_seconds, 0) << "it is kept now";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "cache" / "builds"))
    if (entry.path().filename() == "made")
      std::filesystem::permissions(entry.path(), std::filesystem::perms::owner_read);
  EXPECT_EQ(run(text).status, Status::ok) << "a kept build whose program is no program is made again";
  EXPECT_EQ(run("command = ['./made']\nbuild = ['touch', 'made']").status, Status::compile_error);
}

TEST_F(Programs, OneBuildMakesTheProgramsOfSeveralConfigurations) {
  const std::string text =
      "command = ['./{{END}}']\nbuild = ['sh', '-c', 'echo built >> {{folder}}/log; cp /bin/true right']";
  const auto programs = evaluator(text);
  std::vector<Status> statuses;
  for (const char* end : {"right", "wrong", "right", "wrong"}) {
    request.configuration = {Value(end)};
    programs->submit(request);
    const auto result = programs->wait(60);
    ASSERT_TRUE(result);
    statuses.push_back(result->measurement.status);
  }
  EXPECT_THAT(statuses, ::testing::ElementsAre(Status::ok, Status::compile_error, Status::ok, Status::compile_error));
  EXPECT_EQ(std::filesystem::file_size(folder / "log"), std::string("built\n").size()) << "the build ran once";
}

// A program that prints milliseconds.
TEST_F(Programs, ATimeLongerThanTheRunIsRefused) {
  const Measurement refused = run("command = ['echo', '431.5 ms']\noutput = { time = '([0-9.]+) ms' }");
  EXPECT_EQ(refused.status, Status::wrong_result);
  EXPECT_THAT(refused.message, AllOf(HasSubstr("431.5 s"), HasSubstr("[metrics]")));
  EXPECT_EQ(run("command = ['echo', '431.5 ms']\noutput = { render = '([0-9.]+) ms' }").status, Status::ok);
}

// Another session's build may take long; Ctrl-C does not wait for it.
TEST_F(Programs, CancelDoesNotWaitForTheBuildOfAnother) {
  const std::string slow = "command = ['true']\nbuild = ['sleep', '1000']";
  const auto first = evaluator(slow), second = evaluator(slow);
  first->submit(request);
  const auto is_building = [&] {
    for (const auto& entry : std::filesystem::directory_iterator(folder / "cache" / "builds"))
      if (entry.path().extension() == ".lock") return true;
    return false;
  };
  while (!std::filesystem::exists(folder / "cache" / "builds") || !is_building()) ::usleep(1000);
  second->submit(request);
  EXPECT_FALSE(second->wait(0.05));
  second->cancel();
  EXPECT_EQ(second->pending(), 0u);
  EXPECT_EQ(first->pending(), 1u) << "which goes on";
  first->cancel();
}

TEST_F(Programs, BuildsThatNobodyUsesOrThatWereCutOffAreRemovedAfterAMonth) {
  const std::filesystem::path builds = folder / "cache" / "builds";
  const auto make = [&](const std::string& name, int days) {
    if (name.find('.') == name.npos)
      std::filesystem::create_directories(builds / name);
    else
      std::ofstream(builds / name) << "";
    std::filesystem::last_write_time(builds / name,
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * days));
  };
  for (const char* old : {"unused", "unused.done", "cut", "left.lock", "used"}) make(old, 31);
  for (const char* fresh : {"used.done", "new"}) make(fresh, 1);
  EXPECT_EQ(run("command = ['true']\nbuild = ['false']").status, Status::compile_error);
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(builds)) left.insert(entry.path().filename());
  EXPECT_THAT(left, ::testing::ElementsAre("new", "used", "used.done"));
}

/// A sensor that has failed.
struct Nonsense : Sensor {
  SensorInfo what;
  Nonsense() { what.most_power = 100; }
  const SensorInfo& info() const override { return what; }
  void set_info(const SensorInfo& info) override { what = info; }
  ReadStatus read(std::vector<Reading>& out) override {
    out.push_back({host_seconds(), 1e9});
    return ReadStatus::ok;
  }
};

// Programs with a meter of their own.
TEST_F(Programs, TheEnergyThatTheProgramSaysHasAnIntervalAndNeedsNoSensor) {
  const std::string says =
      "command = ['date', '+time: 1e-6 energy: 1.%N']\noutput = { time = 'time: (\\S+)', energy = 'energy: (.*)' }";
  options.measure.precision = 1e-12;
  EXPECT_EQ(run(says).status, Status::not_converged);
  options.measure.precision = 100;
  options.energy = true;
  std::vector<std::unique_ptr<Sensor>> sensors;
  sensors.push_back(std::make_unique<Nonsense>());
  const auto programs = evaluator(says, std::move(sensors));
  programs->submit(request);
  const auto result = programs->wait(60);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->measurement.status, Status::ok) << result->measurement.message;
  EXPECT_NEAR(result->measurement.value("energy").value_or(0), 1.5, 0.5);
}

// Three runs were enough for a slow program, and the mean of them was what a single delayed one made of it.
TEST_F(Programs, OneRunOfThreeThatWasHeldUpDoesNotMoveTheResult) {
  options.measure.precision = 0.02;
  options.measure.min_repeats = 5;
  options.measure.max_seconds = 1e-6;
  std::ofstream(folder / "count") << "0\n";
  const Measurement measurement = run(R"toml(command = ['sh', '-c', '''
read n < {{folder}}/count; n=$((n + 1)); echo $n > {{folder}}/count
case $n in 3) echo "time: 2.4e-5";; *) echo "time: 0.33${n}e-5";; esac
''']
output = { time = 'time: (\S+)' }
)toml");
  EXPECT_NEAR(measurement.value("time").value_or(0), 0.335e-5, 0.005e-5);
  EXPECT_LT(measurement.half_width("time"), 0.05 * 0.335e-5);
}

// popen() without pclose(): what has ended only waits to be told so.
TEST_F(Programs, WhatEndedByItselfIsNotLeftBehind) {
  const Measurement measurement = run(R"toml(command = ['sh', '-c', '''
true & exec awk -v file=/proc/$!/stat 'BEGIN { while ((getline line < file) > 0) { if (line ~ / Z /) exit 0; close(file) } exit 1 }'
'''])toml");
  EXPECT_EQ(measurement.status, Status::ok) << measurement.message;
  EXPECT_THAT(measurement.warnings, IsEmpty());
}

}  // namespace
}  // namespace ergotune
