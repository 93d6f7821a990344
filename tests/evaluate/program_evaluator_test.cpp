// Whole programs as an evaluator runs them: real programs of this system below a real supervisor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ergotune/base/error.hpp"
#include "ergotune/evaluate/program.hpp"
#include "ergotune/problem/load.hpp"

namespace ergotune {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Programs : ::testing::Test {
  std::filesystem::path folder = std::filesystem::temp_directory_path() / ("ergotune-programs-" + std::to_string(::getpid()));
  LiveOptions options;
  EvaluationRequest request;

  void SetUp() override {
    std::filesystem::create_directories(folder);
    options.cache_folder = folder / "cache";
    options.worker_command = {ERGOTUNE_BINARY_DIR "/ergotune", "worker"};
    options.measure.max_seconds = 0.02;
    options.measure.precision = 100;
    options.measure.min_repeats = 2;
    request.id = 1;
    request.configuration = {Value("right")};
    if (!std::filesystem::exists(options.worker_command[0])) GTEST_SKIP() << "the command is not built";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::unique_ptr<ProgramEvaluator> evaluator(const std::string& program) const {
    const Problem problem = parse_problem("name = \"p\"\n[parameters]\nEND = [\"right\", \"wrong\"]\n[program]\n" + program, folder / "p.toml");
    return std::make_unique<ProgramEvaluator>(problem, Constants{}, DeviceInfo{}, options, std::vector<std::unique_ptr<Sensor>>{});
  }
  Measurement run(const std::string& program) const {
    const auto programs = evaluator(program);
    programs->submit(request);
    const auto result = programs->wait(60);
    return result ? result->measurement : Measurement{};
  }
  /// Why the session ends with it; empty where the configuration has a result, whatever it is.
  std::string why_it_ends(const std::string& program) const {
    try {
      (void)run(program);
    } catch (const UserError& error) {
      return error.what();
    }
    return {};
  }
};

// The best so far is a time that the program says; its processes take longer, or less.
TEST_F(Programs, RacingComparesTheTimeThatTheProgramSays) {
  options.measure.precision = 1e-12;
  request.give_up_above = 1e-4;
  EXPECT_THAT(run("command = ['date', '+time: 0.00000%N']\noutput = { time = 'time: (.*)' }").warnings,
              Not(Contains(HasSubstr("stopped early"))));
  options.measure.max_seconds = 0.3;
  request.give_up_above = 1;
  EXPECT_THAT(run("command = ['date', '+time: 10.%N']\noutput = { time = 'time: (.*)' }").warnings, Contains(HasSubstr("stopped early")));
}

TEST_F(Programs, AllOfTheOutputIsCompared) {
  std::ofstream expected(folder / "expected");
  for (int i = 0; i < 500'000; ++i) expected << "some line\n";
  expected << "right\n";
  expected.close();
  const std::string prints = "command = ['sh', '-c', 'yes some line | head -n 500000; echo {{END}}']\n";
  const std::string compares = prints + "check = { reference = 'expected' }";
  const Measurement right = run(compares);
  EXPECT_EQ(right.status, Status::ok) << right.message;
  const Measurement seen = run(prints + "check = ['cmp', '{{run}}/stdout', '{{folder}}/expected']");
  EXPECT_EQ(seen.status, Status::ok) << seen.message;
  request.configuration = {Value("wrong")};
  const Measurement wrong = run(compares);
  EXPECT_EQ(wrong.status, Status::wrong_result);
  EXPECT_THAT(wrong.message, HasSubstr("line 500001 is \"wrong\" and should be \"right\""));
}

TEST_F(Programs, WhatNoConfigurationCanHelpEndsTheSession) {
  const std::string full = "['sh', '-c', 'echo \"cc: No space left on device\" >&2; exit 1']";
  EXPECT_THAT(why_it_ends("command = " + full), AllOf(HasSubstr("p.toml:4"), HasSubstr("the program has no room")));
  EXPECT_THAT(why_it_ends("command = ['true']\nbuild = " + full), AllOf(HasSubstr("the build has no room"), HasSubstr("make room")));
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

TEST_F(Programs, WithoutProcessesOrDescriptorsTheSessionEnds) {
  options.worker_command = {"sh", "-c", "ulimit -n 8; exec " ERGOTUNE_BINARY_DIR "/ergotune supervise \"$@\"", "worker"};
  EXPECT_THAT(why_it_ends("command = ['true']"), AllOf(HasSubstr("no program can be started"), HasSubstr("ulimit")));
  options.worker_command = {(folder / "nowhere").string(), "worker"};
  EXPECT_THAT(why_it_ends("command = ['true']"), AllOf(HasSubstr("no program can be started"), HasSubstr("nowhere")));
}

// popen() without pclose(): what has ended only waits to be told so.
TEST_F(Programs, WhatEndedByItselfIsNotLeftBehind) {
  const Measurement measurement = run(R"toml(command = ['sh', '-c', '''
true & exec awk -v file=/proc/$!/stat 'BEGIN { while ((getline line < file) > 0) { if (line ~ / Z /) exit 0; close(file) } exit 1 }'
'''])toml");
  EXPECT_EQ(measurement.status, Status::ok) << measurement.message;
  EXPECT_THAT(measurement.warnings, IsEmpty());
}

TEST_F(Programs, AWaitMayBeAsLongAsOneLikes) {
  const auto programs = evaluator("command = ['true']");
  programs->submit(request);
  EXPECT_TRUE(programs->wait(1e300));
  EXPECT_FALSE(programs->wait(-1));
}

}  // namespace
}  // namespace ergotune
