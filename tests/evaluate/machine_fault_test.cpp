// What is the machine's fault is no configuration's result: the session ends and says what to do.
#include "evaluate/live/machine_fault.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ergotune/problem_file.hpp"
#include "error_of.hpp"
#include "evaluate/live/in_process_evaluator.hpp"
#include "evaluate/live/live_evaluator.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

using ::testing::HasSubstr;

constexpr const char* kProblem = R"toml(
name = "plain"
[parameters]
x = [1, 2, 3]
[kernel]
function = "work"
arguments = [
  { name = "n", type = "int32", value = 100 },
  { name = "b", type = "float32", count = 100, access = "write" },
]
source.c.text = "void work(int n, float* b) { for (int i = 0; i < n; ++i) b[i] = i + x - x; }"
)toml";

/// A variable of the environment, for as long as this lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

struct MachineFault : ::testing::Test {
  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
  Problem problem = parse_problem(kProblem, std::filesystem::temp_directory_path() / "plain.toml");
  LiveOptions options;
  void SetUp() override {
    options.device = "host";
    options.jobs = 1;
    options.cache_folder = folder / "cache";
    options.worker_command = {ERGOTUNE_BINARY_DIR "/ergotune", "worker"};
    if (!std::filesystem::exists(options.worker_command[0])) GTEST_SKIP() << "the command is not built";
  }

  static EvaluationRequest request(std::uint64_t id, int x) {
    EvaluationRequest request;
    request.id = id;
    request.index = id;
    request.configuration = {Value(x)};
    return request;
  }
  /// What ends the session; empty where all three configurations have a result, whatever it is.
  static std::string why_it_ends(Evaluator& evaluator) {
    for (int x = 1; x <= 3; ++x) evaluator.submit(request(static_cast<std::uint64_t>(x), x));
    return error_of([&] {
      for (int results = 0; results < 3;) results += evaluator.wait(20).has_value();
    });
  }
  std::string why_live() const {
    LiveEvaluator evaluator(problem, options);
    return why_it_ends(evaluator);
  }
  std::string why_in_process() const {
    InProcessEvaluator evaluator(problem, options);
    return why_it_ends(evaluator);
  }
};

TEST_F(MachineFault, AMissingFolderForTemporaryFilesEndsTheSession) {
  const Variable missing("TMPDIR", (folder / "nowhere").string());
  EXPECT_THAT(why_live(), HasSubstr("TMPDIR"));
  EXPECT_THAT(why_in_process(), HasSubstr("TMPDIR"));
}

TEST_F(MachineFault, AlsoWhereTheCodeIsKnownAndOnlyLoadingFails) {
  EXPECT_EQ(why_live(), "");
  const Variable missing("TMPDIR", (folder / "nowhere").string());
  EXPECT_THAT(why_live(), HasSubstr("TMPDIR"));
  EXPECT_THAT(why_in_process(), HasSubstr("TMPDIR"));
}

TEST_F(MachineFault, ACompilerThatIsNotThereEndsTheSession) {
  const Variable compiler("CC", (folder / "nocc").string());
  EXPECT_THAT(why_live(), HasSubstr("set CC"));
  EXPECT_THAT(why_in_process(), HasSubstr("set CC"));
}

TEST_F(MachineFault, ACompilerWithoutRoomEndsTheSessionAndOneThatRefusesTheSourceDoesNot) {
  const auto compiler = (folder / "cc").string();
  std::ofstream(compiler) << "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n"
                             "echo \"fatal error: error closing /tmp/cc1.s: No space left on device\" >&2\nexit 1\n";
  ::chmod(compiler.c_str(), 0755);
  const Variable ours("CC", compiler);
  EXPECT_THAT(why_live(), HasSubstr("make room"));
  EXPECT_THAT(why_in_process(), HasSubstr("make room"));
  std::ofstream(compiler) << "#!/bin/sh\necho \"error: no such variable\" >&2\nexit 1\n";
  EXPECT_EQ(why_live(), "");
}

}  // namespace
}  // namespace ergotune
