// A fake GPU as a live one: the command sets its clocks through the driver's interface, the kernel's time follows them,
// and the physics are known (tests/fakes/nvml/live_kernel.hpp). Everything here runs in real time, so it is short: the
// same GPUs in virtual time are in tests/tune/random_boards_test.cpp, and scripts/live-GPUs runs ten of them live.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "base/clock.hpp"
#include "ergotune/random.hpp"
#include "fakes/nvml/live_kernel.hpp"
#include "integration/support/command.hpp"
#include "integration/support/fake_gpu.hpp"

namespace ergotune::test {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

/// One GPU, a folder, and the environment that points the command at them. (Quiet: ctest runs few others beside these.)
struct QuietLiveGpu : OnFakeGpu {
  QuietLiveGpu() : OnFakeGpu("generation=ga100 devices=1") {}
  void SetUp() override {
    environment["ERGOTUNE_DATA_DIR"] = (folder.path() / "data").string();
    OnFakeGpu::SetUp();
    // A quick counter, so that a configuration takes half a second.
    nvml.gpu().counter.period = 0.002;
    nvml.gpu().counter.sleeps = 0;
    nvml.gpu().power_limit_mw = nvml.gpu().default_power_limit_mw = nvml.gpu().max_power_limit_mw = 600'000;
    nvml.restart_gpus();
  }
  /// Kernels and sensors run in real time, as on a GPU of their own, but hardly need the processor: they come before
  /// whatever else the machine does, where we may say so. (Niceness would count within one group of processes only.)
  /// Not for the model's load, which is the processor's own.
  static void come_first() {
    const sched_param first{.sched_priority = 1};
    (void)::sched_setscheduler(0, SCHED_RR, &first);
  }
  void TearDown() override {
    const sched_param as_others{.sched_priority = 0};
    (void)::sched_setscheduler(0, SCHED_OTHER, &as_others);
    OnFakeGpu::TearDown();
  }
  /// `count` clocks down from 1410 MHz.
  void give_clocks(int count, int step) {
    auto& b = nvml.gpu();
    b.graphics_clock_count = count;
    for (int i = 0; i < count; ++i) b.graphics_clocks[i] = static_cast<std::uint32_t>(1410 - i * step);
    b.application_graphics = b.default_application_graphics = b.graphics_clocks[0];
    nvml.restart_gpus();
  }
  std::vector<std::string> with(std::vector<std::string> arguments) const {
    for (const char* more : {"--sensor", "nvml:0/energy", "--control", "nvml:0"}) arguments.emplace_back(more);
    return arguments;
  }
  /// J of a launch in the long run, from the GPU's own law.
  double true_energy(double mhz, double mega_cycles, double seconds, double activity) {
    auto& b = nvml.gpu();
    double temperature = b.ambient, power = 0;
    for (int i = 0; i < 30; ++i) {
      power = fake_nvml::power_at(b, activity, mhz, temperature);
      temperature = b.ambient + b.thermal_resistance * power;
    }
    return power * (mega_cycles / mhz + seconds);
  }
};

// Nobody has fitted a model yet: it is fitted first, kept, and used by the next command without a measurement.
TEST_F(QuietLiveGpu, ModelInAProblemFileIsFittedOnceAndKept) {
  give_clocks(6, 200);
  nvml.gpu().knee_mhz = 1010;
  nvml.set_activity(1);
  fake_nvml::LiveLoad load;
  load.mega_cycles = "15";
  folder.write("p.toml", fake_nvml::live_problem(load, "tile = [1, 2]", "core_clock_mhz = \"model\""));
  const auto tune =
      with({"tune", "p.toml", "--device", "host", "--store", "p.db", "--precision", "0.05", "--no-confirm", "--json"});
  const ProcessResult first = ergotune(folder, tune, 240);
  const Json found = json_of(first);
  EXPECT_THAT(first.err, HasSubstr("fitting the power-frequency model"));
  EXPECT_EQ(found["best"]["configuration"]["core_clock_mhz"], 1010) << found;
  EXPECT_EQ(stored_rows(folder.path() / "p.db").size(), 2u) << "only the clocks around the optimum";
  EXPECT_TRUE(
      std::filesystem::exists(folder.path() / "data/calibration" / (std::string(nvml.gpu().uuid) + ".model.json")));
  const ProcessResult again = ergotune(folder, tune, 60);
  EXPECT_THAT(again.err, HasSubstr("clocks by the model of this"));
  EXPECT_THAT(again.err, ::testing::Not(HasSubstr("fitting")));
  // A plan of the problem file uses the same.
  folder.write("q.toml",
               fake_nvml::live_problem(load, "tile = [1, 2]", "core_clock_mhz = \"all\"") +
                   "\n[[plans.mine]]\nfree = [\"code\"]\nfixed = { clocks = \"model\" }\nobjective = \"energy\"\n");
  const ProcessResult planned = ergotune(folder,
                                         with({"tune", "q.toml", "--device", "host", "--store", "p.db", "--precision",
                                               "0.05", "--plan", "mine", "--no-confirm", "--json"}),
                                         60);
  const Json plan = json_of(planned)["plans"][0];
  EXPECT_EQ(plan["best"]["configuration"]["core_clock_mhz"], 1010) << plan;
  EXPECT_EQ(nvml.gpu().locked, 0);
}

// The core voltage, where nvidia-smi prints one, and a GPU that throttles over a third of its clocks.
TEST_F(QuietLiveGpu, TheModelReadsVoltagesAndStopsWhereTheGpuThrottles) {
  give_clocks(40, 30);
  auto& b = nvml.gpu();
  b.knee_mhz = 700;
  nvml.set_activity(1);
  b.power_limit_mw = b.default_power_limit_mw = static_cast<std::uint32_t>(1000 * power_at(b, 1, 1020, 45));
  nvml.restart_gpus();
  // The voltage at the clock that is locked, from the state file itself.
  const auto at = [](std::size_t offset) { return offsetof(fake_nvml::State, gpus) + offset; };
  const auto smi = folder.write(
      "smi",
      fmt::format("#!/usr/bin/env python3\nimport struct\ns = open('{}', 'rb')\ndef d(at):\n  s.seek(at)\n  return "
                  "struct.unpack('d', s.read(8))[0]\nf = d({})\nv = 0.72 + (1.05 - 0.72) * max(0, f - 700) / (1410 - "
                  "700)\nprint('        Graphics                          : %.3f mV' % (1000 * v))\n",
                  nvml.path(), at(offsetof(fake_nvml::Gpu, clock_mhz))));
  ::chmod(smi.c_str(), 0755);
  setenv("ERGOTUNE_NVIDIA_SMI", smi.c_str(), 1);
  const ProcessResult result =
      ergotune(folder, with({"model", "--device", "host", "--clocks", "5", "--no-store", "--json"}), 240);
  unsetenv("ERGOTUNE_NVIDIA_SMI");
  const Json document = json_of(result);
  EXPECT_EQ(document["voltage_measured"], true) << document;
  EXPECT_NEAR(document["ridge_mhz"]["value"].get<double>(), 700, 35) << document;
  EXPECT_NEAR(document["ridges"]["from_voltage_mhz"]["value"].get<double>(), 700, 35);
  EXPECT_GE(document["throttled"].size(), 1u);
  EXPECT_LE(document["throttled"].size(), 3u) << "what lies above a throttled clock is not asked";
  for (const Json& sample : document["samples"]) EXPECT_LE(sample["clock_mhz"].get<double>(), 1080);
  EXPECT_EQ(nvml.gpu().locked, 0);
}

TEST_F(QuietLiveGpu, PlansFindTheOptimumOfAKernelWhoseTimeFollowsTheClock) {
  come_first();
  const char* text = std::getenv("ERGOTUNE_LIVE_BOARDS");
  const int gpus = text ? std::atoi(text) : 1;
  for (int number = 0; number < gpus; ++number) {
    // ridge low, middle, high, none; capped
    Random random(11 + static_cast<std::uint64_t>(number));
    const int kind = (number + 1) % 5;
    const bool all = text != nullptr;
    const int clocks = all ? 30 : 4, step = all ? 40 : 300;
    give_clocks(clocks, step);
    auto& b = nvml.gpu();
    const double bottom = 1410 - step * (clocks - 1);
    b.knee_mhz = bottom + (kind == 0 ? 0.25 : kind == 2 ? 0.8 : 0.5) * (1410 - bottom) + 20 * random.uniform();
    b.v_max = kind == 3 ? b.v_min : 1.0 + 0.2 * random.uniform();
    const double limit = kind == 4 ? 0.65 * b.full_power : 2 * b.full_power;
    b.power_limit_mw = b.default_power_limit_mw = static_cast<std::uint32_t>(1000 * limit);
    b.max_power_limit_mw = std::max(b.power_limit_mw, 600'000u);
    nvml.restart_gpus();
    fake_nvml::LiveLoad load;
    load.mega_cycles = "(12.0 + 3.0 * (tile - 2) * (tile - 2))";
    load.seconds = "0.001";
    load.activity = "(0.7 + 0.05 * tile)";
    folder.write("p.toml", fake_nvml::live_problem(load, all ? "tile = [1, 2, 3, 4, 5, 6]" : "tile = [1, 2]",
                                                   "core_clock_mhz = \"all\""));
    const auto cost = [](double tile) { return 12 + 3 * (tile - 2) * (tile - 2); };
    double least = 1e300, best_clock = 0;
    for (int tile = 1; tile <= (all ? 6 : 2); ++tile)
      for (int i = 0; i < clocks; ++i) {
        const double f = 1410 - i * step, energy = true_energy(f, cost(tile), 0.001, 0.7 + 0.05 * tile);
        const bool capped = fake_nvml::power_at(b, 0.7 + 0.05 * tile, f, 50) > limit;
        if (!capped && energy < least) least = energy, best_clock = f;
      }
    const std::string store = fmt::format("p{}.db", number);
    const Json document = json_of(ergotune(
        folder,
        with(
            {"tune", "p.toml", "--device", "host", "--store", store, "--precision", "0.02", "--plan",
             all ? "model_steered,global_energy,energy_then_clocks,race_to_idle_then_clocks,block_to_freq,freq_to_block"
                 : "energy_then_clocks",
             "--energy-budget", all ? "1" : "0.3", "--json"}),
        3000));
    double evaluated_by_model = 0, evaluated_by_global = 0;
    for (const Json& plan : document["plans"]) {
      ASSERT_FALSE(plan["best"].is_null()) << plan;
      const Json& found = plan["best"]["configuration"];
      const double tile = found["tile"], f = found["core_clock_mhz"];
      const double energy = true_energy(f, cost(tile), 0.001, 0.7 + 0.05 * tile);
      std::fprintf(stderr, "board %d (kind %d) %s: %.0f MHz (true best %.0f), %.2f %% above, %d evaluated\n", number,
                   kind, plan["plan"].get<std::string>().c_str(), f, best_clock, 100 * (energy / least - 1),
                   plan["evaluated"].get<int>());
      EXPECT_LE(energy / least, 1.02) << plan["plan"];
      EXPECT_GE(plan["best"]["confirmation_repeats"], 3) << plan["plan"];
      EXPECT_TRUE(std::abs(f - best_clock) <= step + 1 || energy / least <= 1.02);
      if (plan["plan"] == "model_steered") evaluated_by_model = plan["evaluated"];
      if (plan["plan"] == "global_energy") evaluated_by_global = plan["evaluated"];
    }
    if (all) {
      EXPECT_LE(evaluated_by_model, 0.2 * evaluated_by_global);
    }
    EXPECT_EQ(nvml.gpu().locked, 0);
  }
}

// Power follows the load within the sensor's window; what is recorded is in the file, the figure and the document.
TEST_F(QuietLiveGpu, TraceShowsTheLoad) {
  come_first();
  give_clocks(6, 200);
  folder.write("p.toml", fake_nvml::live_problem({}, "tile = [1]", "core_clock_mhz = \"all\""));
  const ProcessResult result =
      ergotune(folder, {"trace",         "p.toml",    "--device", "host",     "--sensor",
                        "nvml:0/energy", "--control", "nvml:0",   "--config", "{\"core_clock_mhz\": 1010}",
                        "--seconds",     "1.5",       "--before", "0.5",      "--after",
                        "0.5",           "--csv",     "t.csv",    "--figure", "t.svg",
                        "--json"});
  const Json document = json_of(result);
  EXPECT_NEAR(document["load_seconds"].get<double>(), 1.5, 0.4);
  const Json& power = document["power"][0];
  EXPECT_GT(power["final"].get<double>(), 1.5 * nvml.gpu().p0) << document;
  EXPECT_NEAR(power["final"].get<double>(), fake_nvml::power_at(nvml.gpu(), 1, 1010, 45), 30);
  EXPECT_NEAR(document["gpu"][0]["final"].get<double>(), 1010, 1) << document["gpu"];
  std::ifstream csv(folder.path() / "t.csv"), svg(folder.path() / "t.svg");
  const std::string rows((std::istreambuf_iterator<char>(csv)), {}), figure((std::istreambuf_iterator<char>(svg)), {});
  EXPECT_THAT(rows, HasSubstr("temperature_c"));
  EXPECT_THAT(rows, HasSubstr("launches"));
  EXPECT_THAT(figure, HasSubstr("nvml:0/energy"));
  EXPECT_EQ(nvml.gpu().locked, 0);
}

// The same configuration warm and cool: its slope is the GPU's, it is kept, and energies are told at one temperature.
TEST_F(QuietLiveGpu, EnergyOverTemperatureIsFoundKeptAndUsed) {
  come_first();
  give_clocks(4, 200);
  auto& b = nvml.gpu();
  b.leakage = 2;  // W per °C
  b.thermal_tau = 1;
  nvml.restart_gpus();
  folder.write("p.toml", fake_nvml::live_problem({}, "tile = [1]", "core_clock_mhz = [1010]"));
  const auto measured = with({"measure", "p.toml", "--device", "host", "--objective", "corrected_energy", "--json"});
  const ProcessResult before = ergotune(folder, measured);
  EXPECT_EQ(before.exit_code, 2);
  EXPECT_THAT(before.err, HasSubstr("ergotune temperature"));
  const ProcessResult result =
      ergotune(folder,
               with({"temperature", "p.toml", "--device", "host", "--runs", "12", "--energy-budget", "0.2", "--rest",
                     "1", "--every", "4", "--at", "40", "--csv", "t.csv", "--figure", "t.svg", "--json"}),
               120);
  const Json study = json_of(result);
  EXPECT_EQ(study["runs"], 12) << result.err;
  const Json& coefficient = study["coefficient"];
  ASSERT_FALSE(coefficient.is_null()) << study;
  EXPECT_LE(coefficient["low"], 2) << study;
  EXPECT_GE(coefficient["high"], 1) << study;
  EXPECT_GT(coefficient["low"], 0) << study;
  EXPECT_EQ(study["corrected"]["provenance"], "modelled");
  std::ifstream csv(folder.path() / "t.csv");
  const std::string rows((std::istreambuf_iterator<char>(csv)), {});
  EXPECT_EQ(std::ranges::count(rows, '\n'), 13);
  EXPECT_THAT(rows, HasSubstr("corrected_energy_j"));
  const Json found = json_of(ergotune(folder, measured));
  const Json &energy = found["quantities"]["energy"], &corrected = found["quantities"]["corrected_energy"];
  ASSERT_FALSE(corrected.is_null()) << found;
  EXPECT_EQ(corrected["provenance"], "modelled");
  const double degrees = found["quantities"]["temperature"]["value"].get<double>() - 50;
  EXPECT_NEAR(corrected["value"].get<double>(),
              energy["value"].get<double>() - coefficient["watts_per_degree"].get<double>() * degrees *
                                                  found["quantities"]["time"]["value"].get<double>(),
              1e-6);
  EXPECT_EQ(nvml.gpu().locked, 0);
}

// Nothing is calibrated: a pause before the first configuration finds what the idle GPU uses at that clock.
TEST_F(QuietLiveGpu, IdlePowerIsMeasuredAndSubtracted) {
  come_first();
  give_clocks(6, 200);
  folder.write("p.toml", fake_nvml::live_problem({}, "tile = [1]", "core_clock_mhz = [1010]"));
  const Json found = json_of(ergotune(folder, with({"measure", "p.toml", "--device", "host", "--objective",
                                                    "idle_subtracted_energy", "--precision", "0.05", "--json"})));
  const Json& quantities = found["quantities"];
  ASSERT_TRUE(quantities.contains("idle_subtracted_energy")) << found;
  const double idle = fake_nvml::power_at(nvml.gpu(), 0, 1010, nvml.gpu().ambient + 5);
  const double taken =
      quantities["energy"]["value"].get<double>() - quantities["idle_subtracted_energy"]["value"].get<double>();
  EXPECT_NEAR(taken / quantities["time"]["value"].get<double>(), idle, 0.08 * idle);
  EXPECT_GT(quantities["idle_subtracted_energy"]["standard_error"], 0);
}

// B1: a device that is lost is no configuration's status, and takes nothing from what was measured.
TEST_F(QuietLiveGpu, ADeviceThatIsLostEndsTheSessionAndTheSameCommandGoesOn) {
  come_first();
  give_clocks(6, 200);
  folder.write("p.toml", fake_nvml::live_problem({}, "tile = [1, 2, 3, 4, 5, 6]", "core_clock_mhz = [1010]"));
  const auto tune = with({"tune", "p.toml", "--device", "host", "--store", "p.db", "--precision", "0.05", "--strategy",
                          "brute_force", "--json"});
  const auto store = folder.path() / "p.db";
  ChildProcess session = start_ergotune(folder, tune);
  const double deadline = host_seconds() + 60;
  while (host_seconds() < deadline && (!std::filesystem::exists(store) || stored_rows(store).size() < 3))
    ::usleep(20'000);
  nvml.add_fault("*", 15);
  ::sleep(4);
  nvml.clear_faults();
  ASSERT_TRUE(session.wait(60));
  EXPECT_EQ(nvml.gpu().locked, 0) << "put back once it was there again (B13)";
  for (const auto& [configuration, statuses] : stored_rows(store))
    for (const std::string& status : statuses)
      EXPECT_TRUE(status == "ok" || status == "not_converged") << configuration << status;
  EXPECT_FALSE(json_of(ergotune(folder, {"show", "p.db", "--json"}))["best"].is_null());
  const Json found = json_of(ergotune(folder, tune, 120));
  EXPECT_FALSE(found["best"].is_null());
  EXPECT_GE(found["resumed"], 2) << found;
  EXPECT_EQ(found["resumed"].get<int>() + found["evaluated"].get<int>(), 6);
}

// D21: what a session of ours has set is no foreign setting.
TEST_F(QuietLiveGpu, TheLockOfASessionIsItsOwn) {
  give_clocks(6, 200);
  folder.write("p.toml", fake_nvml::live_problem({}, "tile = [1]", "core_clock_mhz = [610, 810, 1010]"));
  ChildProcess session = start_ergotune(folder, with({"tune", "p.toml", "--device", "host", "--no-store"}));
  const double deadline = host_seconds() + 60;
  while (host_seconds() < deadline && !nvml.gpu().locked) ::usleep(20'000);
  for (int i = 0; i < 3; ++i) {
    const Json status = json_of(ergotune(folder, {"clocks", "status", "--json"}))["devices"][0];
    EXPECT_FALSE(status["journal"].is_null());
    EXPECT_TRUE(status["foreign_setting"].is_null()) << status;
    ::usleep(300'000);
  }
  ::kill(session.pid(), SIGINT);
  ASSERT_TRUE(session.wait(60));
  const fake_nvml::Lock lock(nvml.state());
  EXPECT_EQ(nvml.gpu().locked, 0);
}

// M1: a load that runs elsewhere leaves the device nearly idle, and is no measure of its power over its clock.
TEST_F(QuietLiveGpu, AModelOfALoadThatRanElsewhereIsNotKept) {
  give_clocks(6, 200);
  auto& b = nvml.gpu();
  b.power_limit_mw = b.default_power_limit_mw = 290'000;
  nvml.restart_gpus();
  folder.write("p.toml", fake_nvml::live_problem({}, "tile = [1, 2]", "core_clock_mhz = \"model\""));
  const ProcessResult result =
      ergotune(folder, with({"tune", "p.toml", "--device", "host", "--no-store", "--json"}), 240);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(ergotune(folder, with({"model", "--device", "host", "--no-store"}), 240).exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "data/calibration" / (std::string(b.uuid) + ".model.json")));
  EXPECT_EQ(b.locked, 0);
}

// Ctrl-C in a plan: nothing more is measured, no further stage begins, and it does not take long.
TEST_F(QuietLiveGpu, APlanEndsSoonAfterCtrlC) {
  come_first();
  give_clocks(40, 30);
  folder.write("p.toml", fake_nvml::live_problem({}, "tile = [1, 2, 3]", "core_clock_mhz = \"all\""));
  for (const char* plan : {"energy_then_clocks"}) {
    ChildProcess session =
        start_ergotune(folder, with({"tune", "p.toml", "--device", "host", "--store", std::string(plan) + ".db",
                                     "--precision", "0.02", "--plan", std::string(plan) + ",global_energy"}));
    const auto store = folder.path() / (std::string(plan) + ".db");
    const double deadline = host_seconds() + 60;
    while (host_seconds() < deadline && (!std::filesystem::exists(store) || stored_rows(store).size() < 2))
      ::usleep(20'000);
    const std::size_t rows = stored_rows(store).size();
    ::kill(session.pid(), SIGINT);
    ASSERT_TRUE(session.wait(6)) << "Ctrl-C does not end it";
    EXPECT_LE(stored_rows(store).size(), rows + 1) << "what was pending was measured all the same";
    std::ifstream out(folder.path() / "out");
    const std::string message((std::istreambuf_iterator<char>(out)), {});
    EXPECT_THAT(message, HasSubstr("interrupted in stage"));
    EXPECT_THAT(message, ::testing::Not(HasSubstr("global_energy"))) << "the next plan began";
    EXPECT_EQ(nvml.gpu().locked, 0);
  }
}

}  // namespace
}  // namespace ergotune::test
