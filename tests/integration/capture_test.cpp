// Kernels taken out of a program that knows nothing of ergotune, and put back tuned (OpenCL on PoCL, whole processes).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cstdio>
#include <random>
#include <sstream>

#include "base/files.hpp"
#include "device/cuda/nvrtc_api.hpp"
#include "device/hip/hip_api.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "fakes/nvml/fake_nvml.hpp"
#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

using testing::HasSubstr;

const std::string kProgram = std::string(ERGOTUNE_BINARY_DIR) + "/tests/opencl_program";

/// The outputs agree; how steady the times are on a busy machine is not what these tests are about.
bool is_right(const std::string& status) { return status == "ok" || status == "not_converged"; }

/// A program whose launches are captured and replaced.
class Watched : public testing::Test {
 protected:
  explicit Watched(std::string program) : program_(std::move(program)) {}
  std::vector<std::string> program(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), program_);
    return arguments;
  }
  /// What the program prints without us.
  std::string alone(const std::vector<std::string>& arguments) const { return run_process(program(arguments)).out; }
  ProcessResult with(std::vector<std::string> verb, const std::vector<std::string>& arguments) {
    verb.emplace_back("--");
    for (const std::string& word : program(arguments)) verb.push_back(word);
    std::filesystem::remove(log());
    return ergotune(folder_, verb);
  }
  ProcessResult capture(std::vector<std::string> options, const std::vector<std::string>& arguments = {}) {
    options.insert(options.begin(), "capture");
    return with(options, arguments);
  }
  /// Wisdom of a kernel for a device, as if this were its best configuration.
  void write_wisdom(const std::string& kernel, const nlohmann::json& configuration, int size,
                    const nlohmann::json& device, const nlohmann::json& more = nlohmann::json::object()) const {
    nlohmann::json record{
        {"configuration", configuration}, {"problem_size", {size}}, {"objective", "time"}, {"device", device}};
    record.update(more);
    folder_.write("c/" + kernel + ".wisdom",
                  "{\"ergotune_wisdom\":2,\"kernel\":\"" + kernel + "\"}\n" + record.dump() + "\n");
  }
  /// Where the fake drivers write their launches.
  std::string log() const { return (folder_.path() / "launches.txt").string(); }
  /// How often the driver ran "add_one 4x8": blocks and threads.
  std::size_t launches_of(const std::string& launch) const {
    std::istringstream lines(read_file(log()).value_or(""));
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line);) count += line == launch;
    return count;
  }
  const std::string program_;
  TemporaryFolder folder_;
};

class Capture : public Watched {
 protected:
  Capture() : Watched(kProgram) {}
  void SetUp() override {
    if (!has_opencl()) GTEST_SKIP() << "no OpenCL device here";
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_.path() / name); }
};

TEST_F(Capture, ALaunchBecomesAProblemThatTunesAtOnce) {
  const auto captured = capture({"-o", "c"}, {"scale", "4096"});
  ASSERT_EQ(captured.exit_code, 0) << captured.err;
  EXPECT_THAT(captured.out, HasSubstr(alone({"scale", "4096"})));  // the program's own output, unchanged
  EXPECT_THAT(captured.out, HasSubstr("captured scale"));
  const auto tuned = json_of(ergotune(
      folder_, {"tune", "c", "--device", "opencl", "--strategy", "random", "--budget", "4", "--no-confirm", "--json"}));
  EXPECT_EQ(tuned["space"], 13);
  for (const auto& [status, count] : tuned["statuses"].items()) EXPECT_TRUE(is_right(status)) << tuned.dump();
}

// Verification is against what the program's own launch left: a kernel that does something else is found out.
TEST_F(Capture, TheProgramsResultsAreTheReference) {
  ASSERT_EQ(capture({"-o", "c"}, {"once"}).exit_code, 0);
  const auto measured = [&] {
    return json_of(ergotune(folder_, {"measure", "c", "--device", "opencl", "--store", "none.db", "--json"}));
  };
  EXPECT_TRUE(is_right(measured()["status"]));
  std::string source = *read_file(folder_.path() / "c/kernel.cl");
  const std::string right = "sum / ROUNDS";
  source.replace(source.find(right), right.size(), "sum / ROUNDS + 1");
  folder_.write("c/kernel.cl", source);
  EXPECT_EQ(measured()["status"], "wrong_result");
}

TEST_F(Capture, AListNamesKernelsWithTheirTimes) {
  const auto listed = json_of(capture({"--list", "--json"}, {"out-of-order"}));
  ASSERT_EQ(listed["kernels"].size(), 2u) << listed.dump();
  for (const auto& kernel : listed["kernels"]) {
    EXPECT_EQ(kernel["launches"], 1);
    EXPECT_GT(kernel["seconds"], 0);
    EXPECT_EQ(kernel["geometry"], "4096, work-group open");
  }
  EXPECT_FALSE(exists("captured"));
}

// Two threads with contexts of their own, whose programs have a kernel of the same name and another source.
TEST_F(Capture, KernelsOfOneNameInTwoProgramsAreTwo) {
  const auto all = json_of(capture({"--all", "-o", "c", "--json"}, {"threads"}));
  ASSERT_EQ(all["captured"].size(), 2u) << all.dump();
  EXPECT_TRUE(exists("c/scale/problem.toml"));
  EXPECT_TRUE(exists("c/scale-2/problem.toml"));
  EXPECT_NE(*read_file(folder_.path() / "c/scale/kernel.cl"), *read_file(folder_.path() / "c/scale-2/kernel.cl"));
  folder_.write("c/scale/kernel.cl", "an older one");
  EXPECT_EQ(json_of(capture({"--all", "--force", "-o", "c", "--json"}, {"threads"}))["captured"].size(), 2u);
  EXPECT_NE(*read_file(folder_.path() / "c/scale/kernel.cl"), "an older one");
  EXPECT_FALSE(exists("c/scale-3"));
}

TEST_F(Capture, FunctionsThatAProgramLooksUpAreSeen) {
  const auto captured = capture({"-o", "c"}, {"looked-up"});
  ASSERT_EQ(captured.exit_code, 0) << captured.err;
  EXPECT_THAT(captured.out, HasSubstr("captured scale"));
}

// As transforms in place: x and y are one buffer.
TEST_F(Capture, ABufferThatIsGivenTwiceIsCaptured) {
  ASSERT_EQ(capture({"-o", "c"}, {"in-place"}).exit_code, 0);
  EXPECT_THAT(*read_file(folder_.path() / "c/problem.toml"), HasSubstr("name = \"&y\""));
  const auto measured =
      json_of(ergotune(folder_, {"measure", "c", "--device", "opencl", "--store", "none.db", "--json"}));
  EXPECT_TRUE(is_right(measured["status"])) << measured.dump();
}

TEST_F(Capture, AKernelWithOneConfigurationIsReportedAndNotConfirmed) {
  const auto captured = json_of(capture({"-o", "c", "--json"}, {"local"}));  // its block stays
  EXPECT_EQ(captured["captured"][0]["tunable"], false);
  EXPECT_THAT(capture({"-o", "c", "--force"}, {"local"}).out, Not(HasSubstr("next: "))) << "there is nothing to tune";
  const auto tuned = json_of(ergotune(folder_, {"tune", "c", "--device", "opencl", "--store", "c.db", "--json"}));
  EXPECT_EQ(tuned["evaluated"], 1);
  EXPECT_EQ(tuned["best"]["confirmation_repeats"], 0) << tuned.dump();
}

TEST_F(Capture, SkippedLaunchesArePassedOver) {
  EXPECT_EQ(capture({"--kernel", "scale", "--skip", "19", "-o", "c"}, {"scale"}).exit_code, 0);
  const auto late = capture({"--kernel", "scale", "--skip", "20", "-o", "d"}, {"scale"});
  EXPECT_EQ(late.exit_code, 1);
  EXPECT_THAT(late.err, HasSubstr("--skip"));
  EXPECT_FALSE(exists("d"));
  // from its second launch on the kernel changes nothing more, and that is said
  EXPECT_THAT(capture({"--kernel", "sc*", "--skip", "1", "-o", "e"}, {"scale"}).out, HasSubstr("changed no buffer"));
}

TEST_F(Capture, WhatCannotBeCapturedIsSaidByName) {
  for (const auto& [how, words] : {std::pair<std::string, std::string>{"binary", "made from a binary"},
                                   {"shared", "x is shared virtual memory"},
                                   {"offset", "a global offset"}}) {
    const auto result = capture({"-o", "c"}, {how});
    EXPECT_EQ(result.exit_code, 1) << how << result.out;
    EXPECT_THAT(result.err, HasSubstr(words));
    EXPECT_THAT(result.out, HasSubstr(alone({how}))) << how;
    EXPECT_FALSE(exists("c"));
  }
  const auto large = capture({"-o", "c", "--max-memory", "1"}, {"once", "1048576"});
  EXPECT_THAT(large.err, HasSubstr("--max-memory"));
}

TEST_F(Capture, TheProgramsEndIsPassedOn) {
  const auto failed = capture({"-o", "c"}, {"once", "256", "7"});
  EXPECT_EQ(failed.exit_code, 7);
  EXPECT_THAT(failed.err, HasSubstr("the program ended with 7"));
  EXPECT_TRUE(exists("c/problem.toml"));
  const auto crashed = capture({"-o", "d"}, {"crash"});
  EXPECT_EQ(crashed.exit_code, 134);
  EXPECT_THAT(crashed.err, HasSubstr("signal 6"));
  EXPECT_TRUE(exists("d/problem.toml"));
}

TEST_F(Capture, MistakesAreSaid) {
  EXPECT_THAT(capture({"--kernel", "scal", "-o", "c"}, {"once"}).err, HasSubstr("did you mean \"scale\""));
  std::filesystem::create_directory(folder_.path() / "here");
  folder_.write("here/problem.toml", "");
  const auto there = capture({"-o", "here"}, {"once"});
  EXPECT_EQ(there.exit_code, 2);
  EXPECT_THAT(there.err, HasSubstr("--force"));
  EXPECT_EQ(ergotune(folder_, {"capture", "--kernal", "x", "--", kProgram}).exit_code, 2);
  EXPECT_EQ(ergotune(folder_, {"capture", "-o", "c"}).exit_code, 2);
  EXPECT_EQ(ergotune(folder_, {"capture", "--", "/no/such/program"}).exit_code, 2);
  const auto other = ergotune(folder_, {"capture", "--", "true"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("OpenCL"));
  EXPECT_FALSE(exists("captured"));
  EXPECT_THAT(ergotune(folder_, {"tune", "."}).err, HasSubstr("problem.toml"));
}

// It went on alone, with nobody at its socket, and the folder of an unfinished capture stayed.
TEST(WatchedPrograms, AreEndedWithWhoWatchesThem) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    TemporaryFolder folder;
    ChildProcess watching = start_ergotune(
        folder, {"capture", "--", "sh", "-c", "trap \"exit 7\" TERM HUP; echo > begun; while :; do sleep 0.02; done"});
    while (!std::filesystem::exists(folder.path() / "begun")) ::usleep(10'000);
    ::kill(watching.pid(), signal);  // alone, as a service manager does
    const auto status = watching.wait(60);
    ASSERT_TRUE(status && WIFEXITED(*status)) << signal;
    EXPECT_EQ(WEXITSTATUS(*status), 7) << "the program's own end";
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "captured"));
  }
}

class Run : public Capture {
 protected:
  /// Wisdom of scale for this device, as if its best were a work-group of `block`.
  void write_scale(int block, const nlohmann::json& more = nlohmann::json::object()) {
    const nlohmann::json here = json_of(ergotune(folder_, {"devices", "--json"}));
    nlohmann::json device;
    for (const auto& one : here["devices"])
      if (device.is_null() && one["backend"] == "opencl") device = one;
    write_wisdom("scale", {{"WORK_GROUP_X", block}}, 4096, {{"name", device["name"]}, {"backend", "opencl"}}, more);
  }
  ProcessResult run(const std::vector<std::string>& arguments) { return with({"run", "--wisdom", "c"}, arguments); }
};

TEST_F(Run, AnUnmodifiedProgramRunsTunedAndGivesTheSame) {
  ASSERT_EQ(capture({"-o", "c"}, {"scale"}).exit_code, 0);
  // the whole way, as a user goes it
  const auto tuned =
      ergotune(folder_, {"tune", "c", "--device", "opencl", "--budget", "3", "--no-confirm", "--wisdom", "c"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(tuned.err, HasSubstr("not confirmed")) << "programs will run a winner that was measured once";
  EXPECT_THAT(run({"scale"}).err,
              testing::AnyOf(HasSubstr("scale ran tuned 20 times"), HasSubstr("the program's own")));
  write_scale(64);
  const auto same = run({"scale"});
  EXPECT_EQ(same.out, alone({"scale"}));
  EXPECT_THAT(same.err, HasSubstr("WORK_GROUP_X=64"));
  // another size, with an end of its own
  const auto smaller = run({"scale", "1024", "3"});
  EXPECT_EQ(smaller.exit_code, 3);
  EXPECT_EQ(smaller.out, alone({"scale", "1024", "3"}));
  EXPECT_THAT(smaller.err, HasSubstr("1024 in blocks of 64"));
  // one that the configuration does not fit, and one whose launch is another
  const auto odd = run({"scale", "1000"});
  EXPECT_EQ(odd.out, alone({"scale", "1000"}));
  EXPECT_THAT(odd.err, HasSubstr("scale ran as it is"));
}

TEST_F(Run, ClocksOfTheWisdomAreInForceMeanwhile) {
  ASSERT_EQ(capture({"-o", "c"}, {"scale"}).exit_code, 0);
  write_scale(64, {{"execution", {{"core_clock_mhz", 2000}}}});
  const control_trees::Tree tree;
  control_trees::add_cpufreq(tree);
  const std::string clock = tree.real("/sys/devices/system/cpu/cpufreq/policy4/scaling_max_freq").string();
  const auto before = tree.contents();
  const std::map<std::string, std::string> environment{{"ERGOTUNE_SYSFS_ROOT", tree.root().string()},
                                                       {"ERGOTUNE_STATE_DIR", (folder_.path() / "state").string()},
                                                       {"ERGOTUNE_HELPER_SOCKET", "/nowhere"}};
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  const auto run = [&](const std::vector<std::string>& options) {
    std::vector<std::string> words{"run", "--wisdom", "c"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "sh", "-c", "cat " + clock + "; exec " + kProgram + " scale"});
    return ergotune(folder_, words);
  };
  const auto tuned = run({"--clocks", "--control", "cpufreq"}), plain = run({}),
             elsewhere = run({"--clocks", "--control", "nvml:0"});
  for (const auto& [name, value] : environment) ::unsetenv(name.c_str());
  EXPECT_THAT(tuned.out, testing::StartsWith("2000000")) << tuned.err;
  EXPECT_THAT(tuned.err, HasSubstr("WORK_GROUP_X=64"));
  EXPECT_THAT(plain.out, testing::Not(testing::StartsWith("2000000")));
  EXPECT_EQ(elsewhere.exit_code, 0) << "without the right the program runs, at the clocks that are set: "
                                    << elsewhere.err;
  EXPECT_THAT(elsewhere.err, HasSubstr("clocks"));
  EXPECT_EQ(tree.contents(), before) << "restored";
}

TEST_F(Run, AGainThatTheIntervalDoesNotShowReplacesNothing) {
  ASSERT_EQ(capture({"-o", "c"}, {"scale"}).exit_code, 0);
  const auto with_gain = [&](double factor, double error) {
    write_scale(64, {{"quantities", {{"gain_over_default", {{"value", factor}, {"standard_error", error}}}}}});
    return run({"scale"}).err;
  };
  EXPECT_THAT(with_gain(1.05, 0.001), HasSubstr("ran tuned 20 times"));
  EXPECT_THAT(with_gain(1.05, 0.05), HasSubstr("ran as it is"));
  EXPECT_THAT(with_gain(1.001, 0), HasSubstr("ran as it is"));
}

TEST_F(Run, EachThreadsKernelGetsItsOwn) {
  ASSERT_EQ(json_of(capture({"--all", "-o", "c", "--json"}, {"threads"}))["captured"].size(), 2u);
  write_scale(32);
  const auto result = run({"threads"});
  EXPECT_EQ(result.out, alone({"threads"}));
  EXPECT_THAT(result.err, HasSubstr("ran tuned 8 times"));
}

TEST_F(Run, OutOfOrderQueuesAndOpenWorkGroups) {
  ASSERT_EQ(capture({"--kernel", "scale", "-o", "c"}, {"out-of-order"}).exit_code, 0);
  write_scale(128);
  const auto result = run({"out-of-order"});
  EXPECT_EQ(result.out, alone({"out-of-order"}));
  EXPECT_THAT(result.err, HasSubstr("WORK_GROUP_X=128"));
}

// The configuration that was good does not compile any more: the program must not notice.
TEST_F(Run, WhatDoesNotWorkRunsAsItIs) {
  ASSERT_EQ(capture({"-o", "c"}, {"scale"}).exit_code, 0);
  write_scale(64);
  const std::string source = *read_file(folder_.path() / "c/kernel.cl");
  folder_.write("c/kernel.cl", source + "\nthis is no OpenCL;\n");
  const auto broken = run({"scale"});
  EXPECT_EQ(broken.out, alone({"scale"}));
  EXPECT_THAT(broken.err, HasSubstr("it does not compile"));
  // a kernel with another list of arguments
  folder_.write("c/kernel.cl", "__kernel void scale(__global float* y) { y[get_global_id(0)] = 0; }");
  const auto other = run({"scale"});
  EXPECT_EQ(other.out, alone({"scale"}));
  EXPECT_THAT(other.err, HasSubstr("it has other arguments"));
  // the program has another source than the captured one
  const auto another = run({"local"});
  EXPECT_EQ(another.out, alone({"local"}));
  EXPECT_THAT(another.err, HasSubstr("launched none of the captured kernels"));
}

/// CUPTI's and the driver's part are played by fakes, which keep their rules; the library in between is ours.
class CaptureCuda : public Watched {
 protected:
  CaptureCuda() : Watched(ERGOTUNE_BINARY_DIR "/tests/cuda_program") {}
  void SetUp() override {
    ::setenv("ERGOTUNE_CUDA", ERGOTUNE_BINARY_DIR "/tests/fakes/cuda/libcuda.so.1", 1);
    ::setenv("ERGOTUNE_CUPTI", ERGOTUNE_BINARY_DIR "/tests/fakes/cupti/libcupti.so.13", 1);
  }
  void TearDown() override {
    for (const char* name : {"ERGOTUNE_CUDA", "ERGOTUNE_CUPTI", "FAKE_CUPTI_SUBSCRIBED"}) ::unsetenv(name);
  }
};

TEST_F(CaptureCuda, LaunchesAreListedWithGeometryAndArguments) {
  const auto listed = json_of(capture({"--list", "--json"}));
  ASSERT_EQ(listed["kernels"].size(), 1u) << listed.dump();
  const auto& kernel = listed["kernels"][0];
  EXPECT_EQ(kernel["kernel"], "add_one");
  EXPECT_EQ(kernel["launches"], 3);
  EXPECT_EQ(kernel["geometry"], "32 in blocks of 8");
  EXPECT_THAT(kernel["arguments"].get<std::string>(), HasSubstr("(128 bytes from there), 4 bytes 0x20"));
}

TEST_F(CaptureCuda, TheCodeObjectIsReplayed) {
  const auto captured = capture({"--skip", "1", "-o", "c"});
  ASSERT_EQ(captured.exit_code, 0) << captured.err;
  EXPECT_THAT(captured.out, HasSubstr("sum 592"));
  EXPECT_THAT(*read_file(folder_.path() / "c/problem.toml"), HasSubstr("source = { cuda = \"kernel.cubin\" }"));
  EXPECT_EQ(std::filesystem::status(folder_.path() / "c").permissions(), std::filesystem::perms::owner_all)
      << "the program's data";
  const auto measured =
      json_of(ergotune(folder_, {"measure", "c", "--device", "cuda:0", "--store", "none.db", "--json"}));
  EXPECT_TRUE(is_right(measured["status"])) << measured.dump();
}

TEST_F(CaptureCuda, AProgramThatLaunchesNothingIsReported) { EXPECT_EQ(capture({"--list"}, {"idle"}).exit_code, 1); }

// Nothing that nvcc had built in could be captured: the driver loads it while we ask for the kernel's arguments.
TEST_F(CaptureCuda, CodeThatIsLoadedWhenItIsRequestedForIsSeen) {
  ::setenv("FAKE_CUDA_LAZY", "1", 1);
  const auto captured = capture({"-o", "c"});
  ::unsetenv("FAKE_CUDA_LAZY");
  EXPECT_EQ(captured.exit_code, 0) << captured.err;
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "c/kernel.cubin"));
}

TEST_F(CaptureCuda, AnotherProfilerInTheProgramIsSaid) {
  ::setenv("FAKE_CUPTI_SUBSCRIBED", "1", 1);
  const auto result = capture({"-o", "c"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("(39)"));
}

/// `run` on the fake driver, whose add_one forgets a number in blocks of 16.
class RunCuda : public CaptureCuda {
 protected:
  void SetUp() override {
    CaptureCuda::SetUp();
    ::setenv("FAKE_CUDA_SHARED", "0", 1);  // else the block stays as it is
    ::setenv("FAKE_CUDA_LOG", log().c_str(), 1);
  }
  void TearDown() override {
    for (const char* name : {"FAKE_CUDA_SHARED", "FAKE_CUDA_LOG", "FAKE_CUDA_FAIL"}) ::unsetenv(name);
    CaptureCuda::TearDown();
  }
  /// A capture, and wisdom as if its best were blocks of `block`.
  void prepare(int block, const std::vector<std::string>& options = {}, const std::vector<std::string>& program = {}) {
    std::vector<std::string> arguments{"-o", "c", "--force"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto captured = capture(arguments, program);
    ASSERT_EQ(captured.exit_code, 0) << captured.err;
    write_tuned({{"WORK_GROUP_X", block}});
  }
  void write_tuned(const nlohmann::json& configuration, const std::string& kernel = "add_one",
                   const nlohmann::json& more = nlohmann::json::object()) const {
    write_wisdom(kernel, configuration, 32, {{"name", "Fake H100"}, {"backend", "cuda"}}, more);
  }
  ProcessResult run(const std::vector<std::string>& arguments = {}, const std::vector<std::string>& options = {}) {
    std::vector<std::string> verb{"run", "--wisdom", "c"};
    verb.insert(verb.end(), options.begin(), options.end());
    return with(verb, arguments);
  }
  std::string status_of(const std::string& configuration) {
    return json_of(
        ergotune(folder_, {"measure", "c", "--device", "cuda:0", "--config", configuration, "--json"}))["status"];
  }
};

TEST_F(RunCuda, LaunchesAreReplacedHoweverTheProgramFindsTheDriver) {
  prepare(4);
  for (const char* how : {"", "proc-address", "extended", "packed", "reload"}) {
    const std::vector<std::string> arguments = *how ? std::vector<std::string>{how} : std::vector<std::string>{};
    const auto replaced = run(arguments);
    EXPECT_EQ(replaced.exit_code, 0) << how;
    EXPECT_EQ(replaced.out, alone(arguments)) << how;
    // the first launch of each module runs as it is, and once more on copies as it is tuned
    if (std::string(how) == "reload") continue;
    EXPECT_EQ(launches_of("add_one 8x4"), 3u) << how << replaced.err;
    EXPECT_THAT(replaced.err, HasSubstr("32 in blocks of 4")) << how;
  }
}

TEST_F(RunCuda, TheFirstLaunchIsVerifiedAgainstTheProgramsOwn) {
  prepare(16);
  const auto wrong = run();
  EXPECT_EQ(wrong.out, alone({}));
  EXPECT_THAT(wrong.err, HasSubstr("differ"));
  EXPECT_EQ(launches_of("add_one 2x16"), 1u) << "on copies";
}

TEST_F(RunCuda, WhatIsInDoubtRunsAsItIs) {
  prepare(4);
  const auto addresses = run({"addresses"});
  EXPECT_EQ(addresses.out, alone({"addresses"}));
  EXPECT_EQ(launches_of("add_one 8x4"), 1u) << "on copies: " << addresses.err;
  // memory that may not be copied
  EXPECT_THAT(run({}, {"--max-memory", "0"}).err, HasSubstr("--max-memory"));
  EXPECT_EQ(launches_of("add_one 8x4"), 0u);
}

TEST_F(RunCuda, AKernelThatRunsForLongGetsItsClock) {
  fake_nvml::FakeNvml nvml{"generation=hopper devices=1"};
  const char* uuid = "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0";  // the fake CUDA driver's
  std::snprintf(nvml.gpu().uuid, sizeof nvml.gpu().uuid, "%s", uuid);
  auto environment = nvml.environment();
  environment["ERGOTUNE_STATE_DIR"] = (folder_.path() / "state").string();
  environment["ERGOTUNE_HELPER_SOCKET"] = "/nowhere";
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  prepare(4);
  const auto clocks_set = [&](int block, double seconds) {
    const auto tuned_at = [&](const std::string& kernel, double mhz) {
      const nlohmann::json quantities{{"time", {{"value", seconds}}}, {"clock_latency", {{"value", 0.02}}}};
      write_tuned({{"WORK_GROUP_X", block}}, kernel,
                  {{"execution", {{"core_clock_mhz", mhz}}}, {"quantities", quantities}});
    };
    tuned_at("add_one", 1395);
    tuned_at("another_of_its_program", 1980);
    const std::size_t before = nvml.setter_calls().size();
    const auto result = run({}, {"--clocks", "--control", "nvml:0"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::vector<double> clocks;
    const auto calls = nvml.setter_calls();
    for (std::size_t i = before; i < calls.size(); ++i)
      if (std::string(calls[i].function) == "nvmlDeviceSetGpuLockedClocks")
        clocks.push_back(static_cast<double>(calls[i].b));
    EXPECT_FALSE(clocks.empty()) << result.err;
    return clocks;
  };
  EXPECT_EQ(clocks_set(4, 10), (std::vector<double>{1980, 1395}));
  EXPECT_EQ(clocks_set(8, 10), (std::vector<double>{1980, 1395})) << "the program's own configuration is the best";
  EXPECT_EQ(clocks_set(4, 1e-5), (std::vector<double>{1980})) << "over before a change is in force";
  EXPECT_EQ(nvml.gpu().locked, 0) << "restored";
  for (const auto& [name, value] : environment) ::unsetenv(name.c_str());
}

TEST_F(RunCuda, AGraphTakesTheVerifiedLaunch) {
  prepare(4);
  for (const char* how : {"graph", "nodes"}) {
    const auto graph = run({how});
    EXPECT_EQ(graph.out, alone({how}));
    EXPECT_EQ(launches_of("add_one 8x4"), 3u) << "one on copies, one in each of two graphs: " << graph.err;
  }
}

TEST_F(RunCuda, ThreadsForksAndEndsAreTheProgramsOwn) {
  prepare(4);
  const auto threads = run({"threads"});
  EXPECT_EQ(threads.out, alone({"threads"}));
  EXPECT_GT(launches_of("add_one 8x4"), 3u) << threads.err;
  EXPECT_EQ(run({"fork"}).out, alone({"fork"}));
  EXPECT_EQ(run({"end", "7"}).exit_code, 7);
  EXPECT_EQ(run({"abort"}).exit_code, 134);
}

// Shared memory that a kernel does not use, the carveout and clusters change how many blocks run and where, and no
// result.
TEST_F(RunCuda, CompiledCodeIsTunedByBlockAndByWhatItsLaunchAsksFor) {
  prepare(8);
  const auto tuned = json_of(
      ergotune(folder_, {"tune", "c", "--device", "cuda:0", "--budget", "5", "--no-confirm", "--no-store", "--json"}));
  EXPECT_EQ(tuned["space"], (5 * 3 + 1) * 4 * 3 - 4 * 3) << "blocks of 16 have no clusters of 4, those of 32 none";
  EXPECT_EQ(status_of(R"({"WORK_GROUP_X": 16})"), "wrong_result");
  write_tuned(
      {{"WORK_GROUP_X", 8}, {"MORE_SHARED_BYTES", 65536}, {"SHARED_MEMORY_CARVEOUT", 100}, {"CLUSTER_SIZE", 2}});
  const auto replaced = run();
  EXPECT_EQ(replaced.out, alone({}));
  EXPECT_EQ(launches_of("add_one 4x8 carveout cluster"), 3u) << replaced.err;
}

// cuBLAS launches kernels of libraries, which the driver has no function's attributes of.
TEST_F(RunCuda, SharedMemoryOfALibrarysKernelIsKnown) {
  ::setenv("FAKE_CUDA_SHARED", "512", 1);
  ::setenv("FAKE_CUDA_FAIL", "cuFuncGetAttribute=400", 1);
  EXPECT_THAT(capture({"-o", "c"}).out, HasSubstr("the block stays as it is"));
}

// PyTorch's element-wise kernels are given structures of addresses; lists of arrays lie in memory of the device.
TEST_F(RunCuda, AddressesInStructuresAndInMemoryAreFollowed) {
  for (const auto& [how, kernel, address] :
       {std::tuple("structure", "add_struct", "&memory1"), std::tuple("pointers", "add_far", "&memory2@0")}) {
    ASSERT_EQ(capture({"-o", "c", "--force"}, {how}).exit_code, 0);
    EXPECT_THAT(*read_file(folder_.path() / "c/problem.toml"),
                HasSubstr(std::string(address) + "\", type = \"uint64\""));
    EXPECT_TRUE(is_right(status_of(R"({"WORK_GROUP_X": 4})"))) << how;
    EXPECT_EQ(status_of(R"({"WORK_GROUP_X": 16})"), "wrong_result") << how;
    write_tuned({{"WORK_GROUP_X", 4}}, kernel);
    const auto replaced = run({how});
    EXPECT_EQ(replaced.out, alone({how}));
    EXPECT_THAT(replaced.err, HasSubstr("ran tuned 2 times"));
  }
}

TEST_F(RunCuda, ASourceThatTheUserNamesIsCompiledAnew) {
  if (!nvrtc::api().usable()) GTEST_SKIP() << "no NVRTC: " << nvrtc::api().problem();
  const std::string source =
      "extern \"C\" __global__ void add_one(int* x, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) x[i] += 1;\n}\n";
  folder_.write("kernel.cu", source);
  prepare(4, {"--source", "kernel.cu"});
  EXPECT_EQ(*read_file(folder_.path() / "c/kernel.cu"), source);
  const auto replaced = run();
  EXPECT_EQ(replaced.out, alone({}));
  EXPECT_EQ(launches_of("add_one 8x4"), 3u) << replaced.err;
  folder_.write("c/kernel.cu", "#error no kernel");
  const auto broken = run();
  EXPECT_EQ(broken.out, alone({}));
  EXPECT_EQ(launches_of("add_one 8x4"), 0u) << broken.err;
  folder_.write("kernel.cu", source + "#include <vector>\nint main() { add_one<<<8, 4>>>(nullptr, 1); }\n");
  EXPECT_EQ(capture({"-o", "d", "--source", "kernel.cu"}).exit_code, 0);
  folder_.write("kernel.cu", "int main() { f<<<1, 1>>>(); }");
  EXPECT_THAT(capture({"-o", "f", "--source", "kernel.cu"}).out, HasSubstr("add_one"));
  EXPECT_EQ(capture({"-o", "e", "--source", "absent.cu"}).exit_code, 2);
}

// CuPy looks NVRTC's functions up in its library.
TEST_F(RunCuda, SourceIsCapturedOfAProgramThatLooksNvrtcUp) {
  if (!nvrtc::api().usable()) GTEST_SKIP() << "no NVRTC: " << nvrtc::api().problem();
  const std::string library = nvrtc::api().library_name();
  prepare(4, {}, {"nvrtc", library});
  EXPECT_THAT(*read_file(folder_.path() / "c/kernel.cu"), HasSubstr("__global__ void add_one"));
  const auto replaced = run({"nvrtc", library});
  EXPECT_EQ(replaced.out, alone({}));
  EXPECT_EQ(launches_of("add_one 8x4"), 3u) << replaced.err;
  EXPECT_EQ(run().out, alone({}));
  EXPECT_EQ(launches_of("add_one 8x4"), 0u) << "another code object with a kernel of that name";
}

// Whatever fails below the library or beside it, the program's output and end are its own.
TEST_F(RunCuda, FaultsNeverReachTheProgram) {
  prepare(4);
  const std::string wisdom = *read_file(folder_.path() / "c/add_one.wisdom");
  const std::vector<std::string> arguments{"end", "3"};
  const auto own = run_process(program(arguments));
  std::mt19937 random(41);
  const auto draw = [&](std::size_t below) { return random() % below; };
  const std::pair<const char*, std::size_t> functions[] = {
      // and how often the program itself calls them before
      {"cuModuleLoadDataEx", 1},   {"cuModuleGetFunction", 1}, {"cuMemAlloc_v2", 2},       {"cuMemcpyDtoDAsync_v2", 0},
      {"cuMemcpyDtoHAsync_v2", 0}, {"cuStreamSynchronize", 0}, {"cuStreamIsCapturing", 0}, {"cuMemFree_v2", 0},
      {"cuFuncGetAttribute", 0},   {"cuDeviceGetName", 0},     {"cuCtxGetDevice", 0},      {"cuCtxGetCurrent", 0}};
  const int faults = std::getenv("ERGOTUNE_ALL_FAULTS") ? 100 : 25;
  for (int i = 0; i < faults; ++i) {
    ::unsetenv("FAKE_CUDA_FAIL");
    folder_.write("c/add_one.wisdom", wisdom);
    std::string fault;
    if (i % 5 < 3) {
      const auto& [name, calls] = functions[draw(std::size(functions))];
      constexpr int kCodes[] = {1, 2, 200, 400, 719, 999};
      fault = fmt::format("{}={}@{}", name, kCodes[draw(std::size(kCodes))], calls + 1 + draw(3));
      ::setenv("FAKE_CUDA_FAIL", fault.c_str(), 1);
    } else if (i % 5 == 3) {
      fault = wisdom;
      for (std::size_t k = 0; k <= draw(4); ++k) fault[draw(fault.size())] = static_cast<char>(draw(256));
      folder_.write("c/add_one.wisdom", fault.substr(0, fault.size() - draw(fault.size())));
    } else {
      // the command ends at some time; the program goes on alone
      std::vector<std::string> command{"sh",
                                       "-c",
                                       "\"$@\" >out.txt & while [ ! -e begun ]; do sleep 0.01; done; sleep 0." +
                                           fmt::format("{:02}", draw(30)) +
                                           "; kill -9 $!; while [ ! -e ended ]; do sleep 0.02; done",
                                       "sh",
                                       std::string(ERGOTUNE_BINARY_DIR) + "/ergotune",
                                       "run",
                                       "--wisdom",
                                       "c",
                                       "--",
                                       "sh",
                                       "-c",
                                       ": >begun; \"$@\"; echo \"end $?\"; : >ended",
                                       "sh"};
      for (const std::string& argument : program({"steps", "2000"})) command.push_back(argument);
      for (const char* mark : {"begun", "ended"}) std::filesystem::remove(folder_.path() / mark);
      ProcessOptions in_folder;
      in_folder.folder = folder_.path();
      run_process(command, in_folder);
      const std::string out = read_file(folder_.path() / "out.txt").value_or("");
      EXPECT_EQ(out, alone({"steps", "2000"}) + "end 0\n");
      continue;
    }
    const auto replaced = run(arguments);
    EXPECT_EQ(replaced.out, own.out) << fault << replaced.err;
    EXPECT_EQ(replaced.exit_code, own.exit_code) << fault << replaced.err;
  }
}

/// HIP, on the fake run time, whose kernel forgets a number in blocks of 64 and ends the process in blocks of 1024.
class RunHip : public Watched {
 protected:
  RunHip() : Watched(ERGOTUNE_BINARY_DIR "/tests/hip_program") {}
  void SetUp() override {
    if (!hiprtc::api().usable()) GTEST_SKIP() << "no hiprtc: " << hiprtc::api().problem();
    environment_ = {{"ERGOTUNE_HIP", ERGOTUNE_BINARY_DIR "/tests/fakes/hip/libamdhip64.so.5"},
                    {"FAKE_HIP_KERNELS", ERGOTUNE_BINARY_DIR "/tests/fakes/hip/kernels.so"},
                    {"FAKE_CUDA_LOG", log()},
                    {"HIPRTC", hiprtc::api().library_name()}};
    for (const auto& [name, value] : environment_) ::setenv(name.c_str(), value.c_str(), 1);
    code_ = (folder_.path() / "code.hsaco").string();
    ASSERT_EQ(run_process(program({"compile", code_})).exit_code, 0);
  }
  void TearDown() override {
    for (const auto& [name, value] : environment_) ::unsetenv(name.c_str());
    ::unsetenv("FAKE_CUDA_FAIL");
  }
  void write_tuned(int block) const {
    write_wisdom("doubled", {{"WORK_GROUP_X", block}}, 1024, {{"name", "AMD Instinct MI250X"}, {"backend", "hip"}});
  }
  std::string code_;
  std::map<std::string, std::string> environment_;
};

TEST_F(RunHip, KernelsAreListedWithTimes) {
  const auto kernels = json_of(capture({"--list", "--json"}, {"built", code_}))["kernels"];
  ASSERT_EQ(kernels.size(), 1u) << kernels.dump();
  EXPECT_EQ(kernels[0]["kernel"], "doubled");
  EXPECT_EQ(kernels[0]["launches"], 3);
  EXPECT_EQ(kernels[0]["geometry"], "1024 in blocks of 256");
  EXPECT_GT(kernels[0]["seconds"], 0);
}

// A module's function, the function of the host that hipcc registers, and source for hiprtc.
TEST_F(RunHip, LaunchesAreCapturedAndReplacedHoweverTheKernelWasMade) {
  for (const std::string how : {"module", "built", "source", "proc-address", "extended"}) {
    const auto captured = capture({"-o", "c", "--force"}, {how, code_});
    ASSERT_EQ(captured.exit_code, 0) << how << captured.err;
    const bool source = how == "source";
    EXPECT_THAT(*read_file(folder_.path() / "c/problem.toml"),
                HasSubstr(source ? "hip = \"kernel.hip\"" : "hip = \"kernel.hsaco\""))
        << how;
    const auto measured =
        json_of(ergotune(folder_, {"measure", "c", "--device", "hip:0", "--store", how + ".db", "--json"}));
    EXPECT_TRUE(is_right(measured["status"])) << how << measured.dump();
    write_tuned(128);
    const std::string own = alone({how, code_});
    const auto replaced = with({"run", "--wisdom", "c"}, {how, code_});
    EXPECT_EQ(replaced.exit_code, 0) << how;
    EXPECT_EQ(replaced.out, own) << how;
    EXPECT_EQ(launches_of("doubled 8x128"), 3u) << how << ", one of them on copies: " << replaced.err;
    EXPECT_EQ(launches_of("doubled 4x256"), 1u) << how;
  }
}

TEST_F(RunHip, WhatIsInDoubtRunsAsItIs) {
  ASSERT_EQ(capture({"-o", "c"}, {"built", code_}).exit_code, 0);
  const std::string own = alone({"built", code_});
  write_tuned(64);  // wrong results
  EXPECT_EQ(with({"run", "--wisdom", "c"}, {"built", code_}).out, own);
  EXPECT_EQ(launches_of("doubled 16x64"), 1u) << "on copies";
  EXPECT_EQ(launches_of("doubled 4x256"), 3u);
  write_tuned(128);
  // another code object with a kernel of that name
  std::string other = *read_file(code_);
  other.back() = static_cast<char>(other.back() ^ 1);
  folder_.write("other.hsaco", other);
  EXPECT_EQ(with({"run", "--wisdom", "c"}, {"built", (folder_.path() / "other.hsaco").string()}).out, own);
  EXPECT_EQ(launches_of("doubled 8x128"), 0u);
  for (const char* fault : {"cuMemAlloc_v2=2@3", "cuMemcpyDtoDAsync_v2=1", "cuMemcpyDtoHAsync_v2=719"}) {
    ::setenv("FAKE_CUDA_FAIL", fault, 1);
    const auto ended = with({"run", "--wisdom", "c"}, {"end", code_, "3"});
    ::unsetenv("FAKE_CUDA_FAIL");
    EXPECT_EQ(ended.out, own) << fault << ended.err;
    EXPECT_EQ(ended.exit_code, 3) << fault;
  }
}

// FFTs and element-wise kernels are often given one buffer as their input and output.
TEST_F(RunHip, AnArgumentMayBeAnothersMemory) {
  ASSERT_EQ(capture({"-o", "c"}, {"in-place", code_}).exit_code, 0);
  const auto measured = json_of(ergotune(folder_, {"measure", "c", "--device", "hip:0", "--store", "c.db", "--json"}));
  EXPECT_TRUE(is_right(measured["status"])) << measured.dump();
  write_tuned(128);
  const std::string own = alone({"in-place", code_});
  EXPECT_EQ(with({"run", "--wisdom", "c"}, {"in-place", code_}).out, own);
  EXPECT_EQ(launches_of("doubled 8x128"), 3u);
}

TEST_F(RunHip, AGraphTakesTheVerifiedLaunch) {
  ASSERT_EQ(capture({"-o", "c"}, {"built", code_}).exit_code, 0);
  write_tuned(128);
  const std::string own = alone({"graph", code_});
  const auto graph = with({"run", "--wisdom", "c"}, {"graph", code_});
  EXPECT_EQ(graph.out, own);
  EXPECT_EQ(launches_of("doubled 8x128"), 3u) << "one on copies, two of the graph: " << graph.err;
}

}  // namespace
}  // namespace ergotune::test
