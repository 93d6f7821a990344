// ergotune clocks status | restore, from outside.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/process/process.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "fakes/nvml/fake_nvml.hpp"
#include "integration/support/command.hpp"
#include "power/guardian/guardian.hpp"
#include "power/guardian/journal.hpp"
#include "power/guardian_host.hpp"

namespace ergotune {
namespace {

const guardian_host::Host kHost;

using control_trees::kTegraGpu;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Clocks : ::testing::Test {
  fake_nvml::FakeNvml nvml{"generation=hopper devices=2"};
  control_trees::Tree tree, state;
  ProcessOptions options;
  void SetUp() override {
    control_trees::add_tegra(tree);
    options.environment = nvml.environment();
    options.environment["ERGOTUNE_SYSFS_ROOT"] = tree.root().string();
    options.environment["ERGOTUNE_STATE_DIR"] = (state.root() / "state").string();
    options.environment["ERGOTUNE_HELPER_SOCKET"] = "/nowhere";
    options.timeout = 60;
    for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  }
  ProcessResult ergotune(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), ERGOTUNE_BINARY_DIR "/ergotune");
    return run_process(arguments, options);
  }
  // What a session leaves that was killed together with its guardian.
  void leave_behind(const std::string& boot) {
    auto control = open_control("tegra");
    Journal journal{
        "tegra", "tegra", control->device_key(), boot, 1 << 22, 1, "ergotune tune x.toml", 1.75e9, control->snapshot()};
    StateFolder::open(state.root() / "state").write(journal);
    ASSERT_TRUE(control->set(ControlQuantity::core_clock_mhz, 1020).ok());
  }
};

TEST_F(Clocks, SetHoldsWhileACommandRuns) {
  const auto run = [&](std::vector<std::string> options, const std::string& script) {
    std::vector<std::string> words{"clocks", "set", "--control", "nvml:0"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "sh", "-c", script});
    return ergotune(words);
  };
  const auto locked = [&] { return nvml.gpu().locked; };
  const std::string status = fmt::format("{}/ergotune clocks status --json --control nvml:0", ERGOTUNE_BINARY_DIR);
  const ProcessResult result = run({"--core-clock", "990", "--power-limit", "300"}, status + "; exit 5");
  EXPECT_EQ(result.exit_code, 5) << result.err;
  const json device = json::parse(result.out).at("devices").at(0);
  EXPECT_EQ(device.at("power_limit_w").at("set"), 300) << result.out;
  EXPECT_TRUE(device.at("journal").at("session_alive").get<bool>()) << "status names the session that holds the device";
  EXPECT_EQ(locked(), 0);
  std::size_t locks = 0;
  for (const auto& call : nvml.setter_calls())
    locks += std::string(call.function) == "nvmlDeviceSetGpuLockedClocks" && call.a == 990;
  EXPECT_EQ(locks, 1u);

  EXPECT_EQ(run({"--core-clock", "991"}, "exit 0").exit_code, 2) << "no clock of this device";
  EXPECT_EQ(run({}, "exit 0").exit_code, 2) << "nothing to set";
  EXPECT_EQ(ergotune({"clocks", "set", "--control", "nvml:0", "--core-clock", "990"}).exit_code, 2) << "no command";
  const ProcessResult second =
      run({"--core-clock", "990"},
          fmt::format("{}/ergotune clocks set --control nvml:0 --core-clock 1395 -- true", ERGOTUNE_BINARY_DIR));
  EXPECT_EQ(second.exit_code, 2) << "the first session holds the device: " << second.err;
  EXPECT_EQ(locked(), 0);
}

TEST_F(Clocks, SetTakesTheHighestClockThatWisdomHasForThisGpu) {
  const std::string uuid = "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0";  // the fake CUDA driver's
  std::snprintf(nvml.gpu().uuid, sizeof nvml.gpu().uuid, "%s", uuid.c_str());
  options.environment["ERGOTUNE_CUDA"] = ERGOTUNE_BINARY_DIR "/tests/fakes/cuda/libcuda.so.1";
  test::TemporaryFolder folder;
  const json devices = json::parse(ergotune({"devices", "--json"}).out).at("devices");
  const auto gpu = std::ranges::find_if(devices, [&](const json& one) { return one.at("uuid") == uuid; });
  ASSERT_NE(gpu, devices.end()) << devices.dump(1);
  const auto write = [&](const std::string& kernel, const json& execution, const std::string& device) {
    const json record{{"configuration", {{"X", 1}}},
                      {"execution", execution},
                      {"objective", "energy"},
                      {"device", {{"name", device}, {"backend", "cuda"}}}};
    folder.write(kernel + ".wisdom",
                 json{{"ergotune_wisdom", 2}, {"kernel", kernel}}.dump() + "\n" + record.dump() + "\n");
  };
  write("gemm", {{"core_clock_mhz", 990}}, gpu->at("name"));
  write("copy", {{"core_clock_mhz", 1395}}, gpu->at("name"));
  write("elsewhere", {{"core_clock_mhz", 1980}}, "another GPU");
  write("faster", json::object(), gpu->at("name"));
  const auto result =
      ergotune({"clocks", "set", "--control", "nvml:0", "--wisdom", folder.path().string(), "--", "true"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto set = [&] {
    std::vector<unsigned> clocks;
    for (const auto& call : nvml.setter_calls())
      if (std::string(call.function) == "nvmlDeviceSetGpuLockedClocks") clocks.push_back(static_cast<unsigned>(call.a));
    return clocks;
  };
  EXPECT_THAT(set(), ElementsAre(1395u)) << result.err;
  EXPECT_EQ(nvml.gpu().locked, 0);
  write("true", {{"core_clock_mhz", 600}}, gpu->at("name"));
  EXPECT_EQ(ergotune({"clocks", "set", "--control", "nvml:0", "--wisdom", folder.path().string(), "--", "/bin/true"})
                .exit_code,
            0);
  EXPECT_THAT(set(), ElementsAre(1395u, 600u)) << "what was found for the program itself comes before its kernels";
}

TEST_F(Clocks, SetHoldsOnEachNodeOfAProgram) {
  fake_nvml::FakeNvml other{"generation=hopper devices=1"};
  const auto node = [&](const char* name, fake_nvml::FakeNvml& gpu) {
    std::string command = fmt::format("env ERGOTUNE_STATE_DIR={}", (state.root() / name).string());
    for (const auto& [variable, value] : gpu.environment()) command += fmt::format(" {}={}", variable, value);
    return command + " {} --node " + name;
  };
  const auto run = [&](const std::string& clock, const std::string& second) {
    return ergotune({"clocks", "set", "--control", "nvml:0", "--core-clock", clock, "--node-command", node("a", nvml),
                     "--node-command", second, "--", "sh", "-c", "exit 5"});
  };
  const auto locks = [](fake_nvml::FakeNvml& gpu) {
    const auto calls = gpu.setter_calls();
    return std::ranges::count_if(calls, [](const auto& call) {
      return std::string(call.function) == "nvmlDeviceSetGpuLockedClocks" && call.a == 990;
    });
  };
  const ProcessResult result = run("990", node("b", other));
  EXPECT_EQ(result.exit_code, 5) << result.err;
  EXPECT_EQ(locks(nvml), 1);
  EXPECT_EQ(locks(other), 1);
  EXPECT_EQ(nvml.gpu().locked, 0);
  EXPECT_EQ(other.gpu().locked, 0);
  EXPECT_EQ(run("991", node("b", other)).exit_code, 2) << "no clock of these devices";
  other.state().permitted = 0;
  EXPECT_EQ(run("990", node("b", other)).exit_code, 2) << "one setting for all nodes, or for none";
  EXPECT_EQ(run("990", node("a", other)).exit_code, 2) << "a node that is named twice";
  EXPECT_EQ(nvml.gpu().locked, 0);
}

TEST_F(Clocks, SetHoldsUntilAProcessEnds) {
  const std::string script = fmt::format(
      "sleep 1000 & app=$!; {0}/ergotune clocks set --control nvml:0 --core-clock 990 --for $app & holder=$!; until "
      "{0}/ergotune clocks status --json --control nvml:0 | grep -q '\"session_alive\": true'; do sleep 0.05; done; "
      "kill -9 $app; wait $holder",
      ERGOTUNE_BINARY_DIR);
  const ProcessResult result = run_process({"sh", "-c", script}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nvml.gpu().locked, 0);
  EXPECT_EQ(nvml.setter_calls().empty(), false);
  EXPECT_EQ(ergotune({"clocks", "set", "--control", "nvml:0", "--core-clock", "990", "--for", "4194304"}).exit_code, 2);
}

TEST_F(Clocks, StatusPrintsOneDocumentWithEveryDevice) {
  const auto result = ergotune({"clocks", "status", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto devices = json::parse(result.out).at("devices");
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[0].at("id"), "nvml:0");
  EXPECT_EQ(devices[1].at("id"), "nvml:1");
  EXPECT_EQ(devices[2].at("id"), "tegra");
  const auto& core = devices[0].at("core_clock_mhz");
  EXPECT_EQ(core.at("supported").size(), 110u);
  EXPECT_TRUE(core.at("set").is_null());
  EXPECT_EQ(devices[0].at("memory_clock_mhz").at("supported"), json({1593, 2619}));
  const auto& power = devices[0].at("power_limit_w");
  EXPECT_EQ(power.at("min"), 200);
  EXPECT_EQ(power.at("max"), 700);
  EXPECT_EQ(power.at("set"), 700);
  EXPECT_TRUE(devices[0].at("journal").is_null());
  EXPECT_TRUE(devices[0].at("permission").is_boolean());
  EXPECT_TRUE(devices[2].at("power_limit_w").is_null());
}

TEST_F(Clocks, StatusTouchesNothing) {
  const auto before = tree.contents();
  ASSERT_EQ(ergotune({"clocks", "status"}).exit_code, 0);
  EXPECT_EQ(tree.contents(), before);
  EXPECT_EQ(nvml.setter_calls().size(), 0u);
  EXPECT_FALSE(std::filesystem::exists(state.root() / "state"));
}

TEST_F(Clocks, StatusShowsARunningSession) {
  auto session = ControlSession::open(open_control("nvml:1"), {.take_over = false, .command = "ergotune tune a.toml"});
  ASSERT_TRUE(session->set(ControlQuantity::core_clock_mhz, 1410).ok());
  const auto document = json::parse(ergotune({"clocks", "status", "--json", "--control", "nvml:1"}).out);
  const auto& journal = document.at("devices").at(0).at("journal");
  EXPECT_EQ(journal.at("pid"), getpid());
  EXPECT_EQ(journal.at("command"), "ergotune tune a.toml");
  EXPECT_EQ(journal.at("session_alive"), true);
  EXPECT_EQ(ergotune({"clocks", "restore"}).exit_code, 0);
  EXPECT_EQ(nvml.gpu(1).locked, 1) << "a living session's settings are its own";
}

TEST_F(Clocks, RestoreReplaysAStaleJournal) {
  const auto before = tree.contents();
  leave_behind(boot_id());
  const auto result = ergotune({"clocks", "restore", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto document = json::parse(result.out);
  EXPECT_EQ(document.at("complete"), true);
  EXPECT_EQ(document.at("devices").at(0).at("device"), "tegra");
  EXPECT_THAT(result.err, HasSubstr("ergotune tune x.toml"));
  EXPECT_EQ(tree.contents(), before);
  EXPECT_THAT(ergotune({"clocks", "restore"}).err, HasSubstr("nothing to restore"));
}

TEST_F(Clocks, RestoreReplaysAfterARestartOfTheMachine) {
  const auto before = tree.contents();
  leave_behind("00000000-0000-0000-0000-000000000000");
  const auto status = json::parse(ergotune({"clocks", "status", "--json"}).out);
  EXPECT_EQ(status.at("devices").at(2).at("journal").at("from_earlier_boot"), true);
  const auto result = ergotune({"clocks", "restore"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("restarted"));
  EXPECT_EQ(tree.contents(), before);
}

TEST_F(Clocks, RestoreSaysThatAGuardianIsStillAtIt) {
  leave_behind(boot_id());
  const auto folder = StateFolder::open(state.root() / "state");
  // As a guardian that hangs in the driver: the device is locked, the journal is there, the session is gone.
  const auto lock = DeviceLock::try_take(folder, open_control("tegra")->device_key());
  ASSERT_TRUE(lock);
  const auto result = ergotune({"clocks", "restore", "--json"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("guardian"));
  EXPECT_EQ(json::parse(result.out).at("complete"), false);
  EXPECT_EQ(json::parse(result.out).at("being_restored"), json({"tegra"}));
}

// Defect (of nine in 38 kills of session and guardian on a busy machine): a guardian that was killed held its device
// for some milliseconds more, and "run this again later" left the clocks locked.
TEST_F(Clocks, RestoreWaitsForAGuardianThatWasKilledAMomentAgo) {
  const auto before = tree.contents();
  leave_behind(boot_id());
  auto lock = DeviceLock::try_take(StateFolder::open(state.root() / "state"), open_control("tegra")->device_key());
  ASSERT_TRUE(lock);
  std::thread guardian([&] {
    ::usleep(400'000);
    lock.reset();
  });
  const auto result = ergotune({"clocks", "restore"});
  guardian.join();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(tree.contents(), before);
}

TEST_F(Clocks, StatusTellsWhatRunsAndNoApplicationClockThatNobodySet) {
  // A GPU with application clocks at their default, locked by somebody, at rest.
  fake_nvml::FakeNvml ampere("generation=ga100");
  for (const auto& [name, value] : ampere.environment()) options.environment[name] = value;
  ampere.gpu().locked = 1;
  ampere.gpu().locked_min = ampere.gpu().locked_max = 900;
  usleep(20000);
  const auto core = json::parse(ergotune({"clocks", "status", "--json"}).out).at("devices").at(0);
  EXPECT_TRUE(core.at("core_clock_mhz").at("set").is_null()) << core.dump(1);
  EXPECT_EQ(core.at("now").at("core_clock_mhz"), 900);
  EXPECT_THAT(ergotune({"clocks", "status"}).out, HasSubstr("now 900"));
}

TEST_F(Clocks, DevicesListWhatMeasuresAndControlsNoneOfThem) {
  const auto document = json::parse(ergotune({"devices", "--json"}).out);
  std::vector<std::string> sensors;
  for (const auto& sensor : document.at("other_sensors")) sensors.push_back(sensor.at("id"));
  EXPECT_THAT(sensors, ::testing::Contains("nvml:0/energy"));
  EXPECT_THAT(document.at("other_controls").get<std::vector<std::string>>(), ::testing::Contains("nvml:1"));
  const auto people = ergotune({"devices"});
  EXPECT_THAT(people.out, HasSubstr("nvml:1/samples"));
  EXPECT_THAT(people.out, HasSubstr("--sensor"));
}

TEST_F(Clocks, StatusSaysWhyALimitCannotBeSet) {
  nvml.add_fault("nvmlDeviceGetPowerManagementLimitConstraints", 3);
  EXPECT_THAT(ergotune({"clocks", "status"}).out, HasSubstr("NVML code 3"));
}

TEST_F(Clocks, RestoreSaysWhatItCouldNotDo) {
  leave_behind(boot_id());
  const auto file = tree.real(std::string(kTegraGpu) + "/min_freq");
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  const auto result = ergotune({"clocks", "restore"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("min_freq"));
  EXPECT_THAT(result.err, HasSubstr("kept"));
}

TEST_F(Clocks, AreRefusedWhereControlsAreForbidden) {
  options.environment["ERGOTUNE_FORBID_CONTROLS"] = "1";
  leave_behind(boot_id());
  const auto calls = nvml.setter_calls().size();
  for (const auto& arguments : std::vector<std::vector<std::string>>{{"clocks", "status"},
                                                                     {"clocks", "status", "--json"},
                                                                     {"clocks", "restore"},
                                                                     {"clocks", "restore", "--json"}}) {
    const auto result = ergotune(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("controls are forbidden here"));
  }
  EXPECT_EQ(tree.get(std::string(kTegraGpu) + "/max_freq"), "1020000000") << "nothing is touched, restored neither";
  EXPECT_EQ(nvml.setter_calls().size(), calls);
}

TEST_F(Clocks, AnUnknownControlNamesThoseThatAreHere) {
  const auto result = ergotune({"clocks", "status", "--control", "nvml:7"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("nvml:0"));
}

// A tuning run on the CPU with its clock among the parameters, set on a tree of files.
struct TunedClocks : Clocks {
  std::string problem = (state.root() / "problem.toml").string();
  std::map<std::string, std::string> before;
  void SetUp() override {
    Clocks::SetUp();
    control_trees::add_cpufreq(tree);
    before = tree.contents();
  }
  std::vector<std::string> tune(int turns, const std::string& clocks) {
    std::ofstream(problem) << "name = \"clocks\"\n[parameters]\nturn = \"range(1, " << turns + 1
                           << ")\"\n[execution]\ncore_clock_mhz = " << clocks << R"(
[kernel]
function = "work"
arguments = [{ name = "n", type = "int32", value = 100 }, { name = "b", type = "float32", count = 100, access = "write" }]
[kernel.source.c]
text = '''
void work(int n, float* b) { for (int i = 0; i < n; ++i) b[i] = i * turn / turn; }
'''
)";
    return {"tune", problem, "--device", "host", "--strategy", "brute_force", "--no-store", "--no-confirm", "--json"};
  }
};

TEST_F(TunedClocks, AreSetAndPutBack) {
  const auto result = ergotune(tune(2, "[800, 2000, 3600]"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto document = json::parse(result.out);
  EXPECT_EQ(document.at("evaluated"), 6);
  EXPECT_TRUE(document.at("best").at("configuration").contains("core_clock_mhz"));
  EXPECT_THAT(result.err, HasSubstr("cpufreq"));
  EXPECT_EQ(tree.contents(), before);
}

TEST_F(TunedClocks, APlainMistakeIsReportedBeforeAnythingIsSet) {
  const auto result = ergotune(tune(2, "[800, 2100]"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("2100"));
  EXPECT_EQ(tree.contents(), before);
}

TEST_F(TunedClocks, ThatCannotBePutBackAreNamedAndNoSuccess) {
  const auto arguments = tune(1, "[2000]");
  // The kernel takes a file away that is to be written at the end.
  const std::string file = tree.real("/sys/devices/system/cpu/cpufreq/policy4/scaling_min_freq").string();
  std::ofstream(problem) << "name = \"clocks\"\n[parameters]\nturn = [1]\n[execution]\ncore_clock_mhz = [2000]\n"
                         << R"([kernel]
function = "work"
arguments = [{ name = "b", type = "float32", count = 1, access = "write" }]
[kernel.source.c]
text = """
#include <stdio.h>
#include <sys/stat.h>
void work(float* b) { b[0] = 1; if (remove(\")"
                         << file << R"(\") == 0) mkdir(\")" << file << R"(\", 0700); }
"""
)";
  const auto result = ergotune(arguments);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("scaling_min_freq"));
  EXPECT_THAT(result.err, HasSubstr("ergotune clocks restore"));
}

TEST_F(TunedClocks, GoOnWithoutClocksWhereTheyAreForbidden) {
  options.environment["ERGOTUNE_FORBID_CONTROLS"] = "1";
  const auto result = ergotune(tune(2, "[800, 2000, 3600]"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(json::parse(result.out).at("evaluated"), 2);
  EXPECT_THAT(result.err, HasSubstr("forbidden"));
  EXPECT_EQ(tree.contents(), before);
}

}  // namespace
}  // namespace ergotune
