// Clocks of wisdom in force from the launcher: an application on a fake GPU, its lease, and what is left when any of
// its processes is killed. ERGOTUNE_KILLS says how many kills (20).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "device/cuda/nvrtc_api.hpp"
#include "ergotune/random.hpp"
#include "integration/support/command.hpp"
#include "integration/support/fake_gpu.hpp"
#include "patience.hpp"
#include "power/guardian/guardian.hpp"

namespace ergotune::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::ptrdiff_t lines(const std::string& text) { return std::ranges::count(text, '\n'); }

// The fake driver runs add_one(int* x, int n) whatever its source is.
const char* const kProblem = R"(
name = "add"
[constants]
n = 64
[parameters]
block = [32, 64]
[kernel]
function = "add_one"
source = { cuda = { text = 'extern "C" __global__ void add_one(int* x, int count) { if (threadIdx.x < count) x[threadIdx.x] += 1; }' } }
arguments = [
  { name = "x", type = "int32", count = "n", access = "read_write" },
  { name = "count", type = "int32", value = "n" },
]
[kernel.launch]
global = ["n"]
block = ["block"]
)";

struct LauncherClocks : OnFakeGpu {
  int applications = 0;
  LauncherClocks() : OnFakeGpu("generation=hopper devices=1") {}
  void SetUp() override {
    if (!nvrtc::api().usable()) GTEST_SKIP() << "no NVRTC: " << nvrtc::api().problem();
    const char* uuid = "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0";  // the fake CUDA driver's
    std::snprintf(nvml.gpu().uuid, sizeof nvml.gpu().uuid, "%s", uuid);
    nvml.gpu().power_limit_mw = 650'000;  // the user's own
    environment["ERGOTUNE_CUDA"] = ERGOTUNE_BINARY_DIR "/tests/fakes/cuda/libcuda.so.1";
    environment["ERGOTUNE_COMMAND"] = ergotune_program();
    OnFakeGpu::SetUp();
    folder.write("add.toml", kProblem);
    std::filesystem::create_directory(folder.path() / "wisdom");
    wisdom(R"({"core_clock_mhz": 1395, "power_limit_w": 500})");
  }
  void wisdom(const std::string& execution, const std::string& kernel = "add_one",
              const json& quantities = json::object()) const {
    const json record{{"configuration", {{"block", 64}}},
                      {"problem_size", {64}},
                      {"quantities", quantities},
                      {"execution", json::parse(execution)},
                      {"objective", "energy"},
                      {"device", {{"name", "Fake GPU"}, {"backend", "cuda"}}}};
    json named = record;
    const json devices = json::parse(ergotune(folder, {"devices", "--json"}).out).at("devices");
    for (const json& device : devices)
      if (device.at("uuid") == nvml_uuid()) named["device"]["name"] = device.at("name");
    folder.write("wisdom/" + kernel + ".wisdom",
                 json{{"ergotune_wisdom", 2}, {"kernel", kernel}}.dump() + "\n" + named.dump() + "\n");
  }
  static std::string nvml_uuid() { return "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0"; }
  std::string own(int number) const { return (folder.path() / fmt::format("app{}", number)).string(); }
  ChildProcess start(const std::map<std::string, std::string>& more = {}) {
    ProcessOptions options;
    options.environment = more;
    std::vector<std::string> words{ERGOTUNE_BINARY_DIR "/tests/launcher_application", folder.path().string(),
                                   own(++applications)};
    if (more.contains("ERGOTUNE_CLOCKS")) words.push_back("by-environment");
    return ChildProcess::start(words, options);
  }
  bool ran(int number) const {
    return eventually([&] { return std::filesystem::exists(own(number)); });
  }
  std::string warnings(int number) const { return read_file(own(number) + ".warnings").value_or(""); }
  bool set() { return nvml.gpu().locked != 0 || nvml.gpu().power_limit_mw != 650'000; }
};

/// Whether the environment asks for the clocks, or the application.
struct LauncherClocksAsked : LauncherClocks, ::testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(By, LauncherClocksAsked, ::testing::Bool());

TEST_P(LauncherClocksAsked, HoldWhileTheApplicationLives) {
  std::map<std::string, std::string> more;
  if (GetParam()) more["ERGOTUNE_CLOCKS"] = "1";
  ChildProcess application = start(more);
  ASSERT_TRUE(ran(1)) << warnings(1);
  EXPECT_EQ(warnings(1), "");
  EXPECT_EQ(nvml.gpu().locked_max, 1395u) << "in force before the first launch returns";
  EXPECT_EQ(nvml.gpu().power_limit_mw, 500'000u);
  const json status = json::parse(ergotune(folder, {"clocks", "status", "--json"}).out);
  const json journal = status.at("devices").at(0).at("journal");
  EXPECT_THAT(journal.at("command").get<std::string>(), HasSubstr(std::to_string(application.pid())));
  EXPECT_THAT(journal.at("command").get<std::string>(), HasSubstr("1395"));
  application.kill(SIGTERM);
  application.wait(20);
  EXPECT_TRUE(eventually([&] { return !set() && list_journals().empty(); }));
}

TEST_F(LauncherClocks, AreLeftAloneUnlessAskedFor) {
  ChildProcess application = start({{"ERGOTUNE_CLOCKS", "0"}});
  ASSERT_TRUE(ran(1));
  EXPECT_THAT(nvml.setter_calls(), IsEmpty());
}

TEST_F(LauncherClocks, OfTheFirstApplicationHoldForTwo) {
  ChildProcess first = start();
  ASSERT_TRUE(ran(1));
  wisdom(R"({"core_clock_mhz": 1605})");
  ChildProcess second = start();
  ASSERT_TRUE(ran(2)) << "it runs, at the clocks that are set";
  EXPECT_EQ(nvml.gpu().locked_max, 1395u);
  EXPECT_EQ(warnings(1), "");
  EXPECT_THAT(warnings(2), HasSubstr(std::to_string(first.pid()))) << "which names the first";
  EXPECT_EQ(lines(warnings(2)), 1) << "once, of two kernels: " << warnings(2);
  second.kill(SIGKILL);
  second.wait(20);
  ::usleep(300'000);
  EXPECT_EQ(nvml.gpu().locked_max, 1395u) << "the end of the second changes nothing";
  first.kill(SIGKILL);
  EXPECT_TRUE(eventually([&] { return !set(); }));
}

TEST_F(LauncherClocks, NeitherAMissingCommandNorARefusalEndsTheApplication) {
  ChildProcess without = start({{"ERGOTUNE_COMMAND", "/nowhere/ergotune"}});
  ASSERT_TRUE(ran(1));
  EXPECT_EQ(lines(warnings(1)), 1) << warnings(1);
  nvml.state().permitted = 0;
  ChildProcess refused = start();
  ASSERT_TRUE(ran(2));
  EXPECT_EQ(lines(warnings(2)), 1) << warnings(2);
  EXPECT_FALSE(set());
}

TEST_F(LauncherClocks, BeyondThePolicyOfErgotunedAreRefused) {
  const std::filesystem::path place = folder.path() / "daemon";
  std::filesystem::create_directories(place / "run");
  const std::string socket = (place / "run/ergotuned.sock").string(), policy = (place / "policy.toml").string();
  const auto permit = [&](const std::string& text) {
    std::ofstream(policy) << text;
    ::chmod(policy.c_str(), 0644);
  };
  ::setenv("ERGOTUNE_HELPER_SOCKET", socket.c_str(), 1);
  const auto with_daemon = [&](const std::string& text, auto&& check) {
    permit(text);
    ChildProcess daemon =
        ChildProcess::start({ERGOTUNE_BINARY_DIR "/ergotuned", "--socket", socket, "--policy", policy, "--state-dir",
                             (place / "state").string(), "--audit-log", (place / "audit.log").string(), "--nvml",
                             fake_nvml::FakeNvml::library()});
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(socket); }));
    ChildProcess application = start();
    ASSERT_TRUE(ran(applications)) << warnings(applications);
    check();
    application.kill(SIGKILL);
    application.wait(20);
    EXPECT_TRUE(eventually([&] { return !set(); })) << read_file(place / "audit.log").value_or("");
    daemon.kill(SIGTERM);
    daemon.wait(20);
  };
  const std::string user = fmt::format("[[allow]]\nusers = [{}]\ndevices = [\"*\"]\n", ::geteuid());
  with_daemon(user + "core_clock_mhz = [300, 1400]\npower_limit_w = [300, 700]\n", [&] {
    EXPECT_EQ(warnings(applications), "");
    EXPECT_EQ(nvml.gpu().locked_max, 1395u);
  });
  nvml.state().permitted = 0;  // the application's user has no rights of its own
  with_daemon(user + "core_clock_mhz = [300, 1200]\npower_limit_w = [300, 700]\n", [&] {
    EXPECT_NE(warnings(applications), "");
    EXPECT_FALSE(set()) << "neither the clock, nor the limit that would be permitted";
  });
}

using QuietLauncherClocks = LauncherClocks;

/// A kernel that the clock accelerates, and one that waits for memory: what they need at a clock by the physics of the
/// fake GPU.
struct TwoKernels {
  const fake_nvml::Gpu& gpu;
  double mega_cycles, seconds;
  double heavy_joules(double mhz) const { return fake_nvml::power_at(gpu, 1, mhz, gpu.ambient) * mega_cycles / mhz; }
  double light_joules(double mhz) const { return fake_nvml::power_at(gpu, 0.3, mhz, gpu.ambient) * seconds; }
  template <class Joules>
  double best_clock(Joules joules) const {
    const auto* clocks = gpu.graphics_clocks;
    return *std::min_element(clocks, clocks + gpu.graphics_clock_count,
                             [&](double a, double b) { return joules(a) < joules(b); });
  }
};

/// The energy of the rounds, and the clocks that were set in them.
struct RoundsRun {
  double joules = 0;
  std::vector<std::uint32_t> clocks;
};

struct QuietClockForEachKernel : QuietLauncherClocks {
  TwoKernels kernels{nvml.gpu(), 360, 0.6};
  double heavy_mhz = kernels.best_clock([this](double mhz) { return kernels.heavy_joules(mhz); });
  double light_mhz = kernels.best_clock([this](double mhz) { return kernels.light_joules(mhz); });
  void SetUp() override {
    LauncherClocks::SetUp();
    std::string light = kProblem;
    for (std::size_t at = 0; (at = light.find("add_one", at)) != std::string::npos;) light.replace(at, 7, "no_work");
    folder.write("light.toml", light);
  }
  RoundsRun run(int rounds, double mega_cycles, double seconds) {
    const auto described = [&](double mhz, double time) { return json{{"core_clock_mhz", mhz}, {"time", time}}; };
    record("add_one", described(heavy_mhz, mega_cycles / heavy_mhz));
    record("no_work", described(light_mhz, seconds));
    ProcessOptions options;
    const double before = nvml.true_energy();
    const std::size_t calls = nvml.setter_calls().size();
    const ProcessResult result =
        run_process({ERGOTUNE_BINARY_DIR "/tests/launcher_application", folder.path().string(), own(++applications),
                     std::to_string(rounds), std::to_string(mega_cycles), std::to_string(seconds)},
                    options);
    RoundsRun out{nvml.true_energy() - before, {}};
    EXPECT_TRUE(result.ok()) << result.err;
    EXPECT_EQ(warnings(applications), "");
    EXPECT_TRUE(eventually([&] { return !set() && list_journals().empty(); }));
    const auto all = nvml.setter_calls();
    for (std::size_t i = calls; i < all.size(); ++i)
      if (std::string(all[i].function) == "nvmlDeviceSetGpuLockedClocks") out.clocks.push_back(all[i].b);
    return out;
  }
  void record(const std::string& kernel, json execution) {
    json quantities{{"time", {{"value", execution["time"]}}}};
    execution.erase("time");
    wisdom(execution.dump(), kernel, quantities);
  }
};

TEST_F(QuietClockForEachKernel, NeedsLessEnergyThanTheBestCommonClock) {
  constexpr int kRounds = 4;
  const auto both = [&](double mhz) { return kernels.heavy_joules(mhz) + kernels.light_joules(mhz); };
  const double common = kRounds * both(kernels.best_clock(both));
  const double apart = kRounds * (kernels.heavy_joules(heavy_mhz) + kernels.light_joules(light_mhz));
  ASSERT_LT(apart, 0.9 * common) << "the physics of the fake GPU have changed: choose other kernels";
  with_patience("the fake GPU idles while the host is late", [&] {
    const RoundsRun separate = run(kRounds, kernels.mega_cycles, kernels.seconds);
    std::vector<std::uint32_t> in_turn;
    for (int i = 0; i < kRounds; ++i)
      for (const double mhz : {heavy_mhz, light_mhz}) in_turn.push_back(static_cast<std::uint32_t>(mhz));
    EXPECT_EQ(separate.clocks, in_turn);
    EXPECT_LT(separate.joules, common) << "without the cost of switching " << apart;
    std::printf("%.0f J, with the best common clock %.0f J, without the cost of switching %.0f J (simulated)\n",
                separate.joules, common, apart);
  });
}

TEST_F(QuietClockForEachKernel, IsLeftOutWhereKernelsAreShort) {
  with_patience("a kernel runs for as long as the host is late", [&] {
    const RoundsRun brief = run(100, 0.005 * heavy_mhz, 0.005);
    EXPECT_EQ(brief.clocks, std::vector{static_cast<std::uint32_t>(heavy_mhz)});
  });
}

TEST_F(QuietLauncherClocks, AreRestoredWhoeverIsKilled) {
  const char* text = std::getenv("ERGOTUNE_KILLS");
  const int kills = text ? std::atoi(text) : 20;
  Random random(20261124);
  int in_force = 0, by_way[5] = {};
  {  // what is compiled once
    ChildProcess application = start();
    ASSERT_TRUE(ran(1));
    application.kill(SIGKILL);
    application.wait(20);
    ASSERT_TRUE(eventually([&] { return !set(); }));
  }
  for (int kill = 0; kill < kills; ++kill) {
    ChildProcess application = start();
    ::usleep(static_cast<useconds_t>(1e6 * random.uniform()));
    pid_t helper = 0;
    for (const JournalStatus& journal : list_journals()) helper = journal.session.pid;
    const std::vector<pid_t> guardians = helper > 0 ? descendants_of(helper) : std::vector<pid_t>();
    in_force += set();
    const auto end = [](pid_t pid) {
      if (pid > 0) ::kill(pid, SIGKILL);
    };
    const int way = kill % 5;
    ++by_way[way];
    // application; helper; guardian; helper and guardian; application and helper
    if (way == 0 || way == 4) end(application.pid());
    if (way == 1 || way == 3 || way == 4) end(helper);
    if (way == 2 || way == 3)
      for (const pid_t guardian : guardians) end(guardian);
    ::usleep(static_cast<useconds_t>(50'000 * random.uniform()));
    application.kill(SIGKILL);
    ASSERT_TRUE(application.wait(20));
    const std::string helpers_words = std::string("--for") + '\0' + std::to_string(application.pid());
    // who holds the device is gone, or sees that the application is; one that began late as well
    const auto over = [&] { return !set() && list_journals().empty(); };
    if (way == 3) {
      ::usleep(300'000);
      const ProcessResult restored = ergotune(folder, {"clocks", "restore"});
      EXPECT_EQ(restored.exit_code, 0) << restored.err;
    }
    EXPECT_TRUE(eventually(over)) << "kill " << kill << ", way " << way << ", helper " << helper << ": locked "
                                  << nvml.gpu().locked << ", limit " << nvml.gpu().power_limit_mw << ", journals "
                                  << list_journals().size();
    EXPECT_TRUE(eventually([&] { return !some_process_mentions(helpers_words); }));
    if (HasFailure()) break;
  }
  std::fprintf(stderr,
               "%d kills, settings were in force at %d of them; application %d, helper %d, guardian %d, helper and "
               "guardian %d, application and helper %d\n",
               kills, in_force, by_way[0], by_way[1], by_way[2], by_way[3], by_way[4]);
}

}  // namespace
}  // namespace ergotune::test
