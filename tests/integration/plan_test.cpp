// `tune --plan`, driven from outside: simulated devices and replayed recordings.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/process/process.hpp"
#include "integration/support/command.hpp"
#include "recorded_data.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::json;

/// A folder of this process alone: the same tests may run elsewhere on this machine.
std::string folder() {
  static const test::TemporaryFolder own;
  return own.path().string();
}

ProcessResult command(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {ERGOTUNE_BINARY_DIR "/ergotune"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_process(all);
}

const std::string kGemm = ERGOTUNE_SOURCE_DIR "/examples/clocks/simulated_gemm.toml";

TEST(PlanCommand, ComparesPlansOnASimulatedDevice) {
  const std::string figure = folder() + "/plans.svg";
  const ProcessResult result = command({"tune", kGemm, "--device", "sim:a100", "--plan",
                                        "race_to_idle,energy_then_clocks,global_energy,model_steered", "--no-store",
                                        "--json", "--figure", figure});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(document["provenance"], "simulated");
  ASSERT_EQ(document["plans"].size(), 4u);
  std::map<std::string, Json> plans;
  for (const Json& plan : document["plans"]) {
    plans[plan["plan"]] = plan;
    EXPECT_GT(plan["best"]["quantities"]["energy"]["value"].get<double>(), 0);
    EXPECT_EQ(plan["best"]["quantities"]["energy"]["provenance"], "simulated");
    EXPECT_TRUE(plan["best"]["configuration"].contains("core_clock_mhz"));
  }
  // Going Green V-A: race-to-idle is never the least energy, two stages come close to the global optimum, and cheaper.
  EXPECT_GT(plans["race_to_idle"]["above_optimum_percent"].get<double>(), 5);
  EXPECT_LT(plans["global_energy"]["above_optimum_percent"].get<double>(), 3);
  EXPECT_LT(plans["energy_then_clocks"]["above_optimum_percent"].get<double>(), 8);
  EXPECT_LT(plans["model_steered"]["above_optimum_percent"].get<double>(), 5);
  const auto evaluated = [&](const char* plan) { return plans[plan]["asked"].get<int>(); };
  EXPECT_LT(evaluated("energy_then_clocks"), evaluated("global_energy") / 5);
  EXPECT_LT(evaluated("model_steered"), evaluated("global_energy") / 3);
  std::ifstream svg(figure);
  const std::string text((std::istreambuf_iterator<char>(svg)), {});
  EXPECT_NE(text.find("simulated"), std::string::npos);
}

TEST(PlanCommand, ReplaysTheRecordedA100GemmWithItsNoisyEnergies) {
  const auto recording = test::recorded_data() / "energy/gemm_A100_898_open.json.gz";
  const std::string problem = folder() + "/gemm_a100.toml";
  std::ofstream(problem)
      << "name = \"gemm\"\nobjective = \"energy\"\n[parameters]\nnvml_pwr_limit = [250, 225, 200, 175, 150]\n"
         "nvml_gr_clock = [1410]\nMWG = [16, 32, 64, 128]\nNWG = [16, 32, 64, 128]\nKWG = [32]\nMDIMC = [8, 16, 32]\n"
         "NDIMC = [8, 16, 32]\nMDIMA = [8, 16, 32]\nNDIMB = [8, 16, 32]\nKWI = [2]\nVWM = [1, 2, 4, 8]\n"
         "VWN = [1, 2, 4, 8]\nSTRM = [0]\nSTRN = [0]\nSA = [0, 1]\nSB = [0, 1]\nPRECISION = [32]\n[kernel]\n"
         "function = \"f\"\n[kernel.source.opencl]\ntext = \"kernel void f() {}\"\n[kernel.launch]\ngrid = [1]\n"
         "block = [1]\n";
  const ProcessResult result = command({"tune", problem, "--device", "replay:" + recording.string(), "--plan",
                                        "global_energy,race_to_idle,power_capping", "--no-store", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(document["space"], 898);
  EXPECT_EQ(document["plans"][0]["asked"], 898);
  EXPECT_NEAR(document["plans"][0]["above_optimum_percent"].get<double>(), 0, 1e-9);
  EXPECT_GT(document["plans"][0]["best"]["quantities"]["energy"]["standard_error"].get<double>(), 0);
  EXPECT_GT(document["plans"][1]["above_optimum_percent"].get<double>(), 0);
}

/// A plan of its own over parameter `turn`; with `free`, what its stage frees.
std::string planned(const std::string& problem, const std::string& free) {
  return problem + "\n[[plans.mine]]\nname = \"only\"\nfree = [\"" + free +
         "\"]\nobjective = \"time\"\nstrategy = \"brute_force\"\n";
}

TEST(PlanCommand, PlansThatAllFailEndWithOne) {
  const std::string file = folder() + "/hopeless.toml";
  std::ofstream(file) << planned(test::counting_problem(3), "power");
  const ProcessResult result =
      command({"tune", file, "--device", "sim:a100", "--plan", "mine", "--no-store", "--json"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_TRUE(document["plans"][0]["best"].is_null());
  EXPECT_NE(document["plans"][0]["why_not"].get<std::string>().find("no such parameters"), std::string::npos);
}

/// Starts plans of a problem with many configurations, sends it SIGINT when `rows` are stored, and returns its exit
/// code.
int interrupted(const test::TemporaryFolder& own, const std::vector<std::string>& options, std::size_t rows) {
  std::vector<std::string> words{
      "tune", "c.toml", "--device", "host",     "--store",
      "c.db", "--jobs", "1",        "--sensor", "command:while :; do echo 40; sleep 0.005; done"};
  words.insert(words.end(), options.begin(), options.end());
  ChildProcess session = test::start_ergotune(own, words);
  const auto store = own.path() / "c.db";
  const double deadline = host_seconds() + 120;
  while (host_seconds() < deadline && (!std::filesystem::exists(store) || test::stored_rows(store).size() < rows))
    ::usleep(50'000);
  ::kill(session.pid(), SIGINT);
  const auto status = session.wait(20);
  EXPECT_TRUE(status) << "Ctrl-C does not end it";
  return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
}

TEST(PlanCommand, InterruptedItSaysSo) {
  const test::TemporaryFolder own;
  own.write("c.toml", planned(test::counting_problem(500), "code"));
  EXPECT_EQ(interrupted(own, {"--plan", "mine"}, 2), 1) << "there is no answer yet";
  const auto words = [&](const char* name) {
    std::ifstream in(own.path() / name);
    return std::string((std::istreambuf_iterator<char>(in)), {});
  };
  EXPECT_NE(words("out").find("interrupted in stage \"only\""), std::string::npos) << words("out");
  EXPECT_NE(words("err").find("interrupted; the same command goes on from there"), std::string::npos) << words("err");
}

// The first plan has an answer by then, unless the machine is too busy for energies.
TEST(PlanCommand, InterruptedItWritesNoWisdom) {
  const test::TemporaryFolder own;
  own.write("c.toml",
            planned(test::counting_problem(500), "code") +
                "[[plans.quick]]\nfree = [\"code\"]\nobjective = \"time\"\nstrategy = \"random\"\nbudget = 2\n");
  EXPECT_GE(interrupted(own, {"--plan", "quick,mine", "--no-confirm", "--wisdom", "wisdom"}, 6), 0);
  EXPECT_FALSE(std::filesystem::exists(own.path() / "wisdom/work.wisdom"));
}

}  // namespace
}  // namespace ergotune
