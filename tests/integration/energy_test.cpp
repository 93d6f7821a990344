// ergotune energy, from outside: a processor of known power.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "fakes/sysfs_trees/sysfs_trees.hpp"
#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

using nlohmann::json;

/// 80 W in one package and 20 W in the other, as their counters tell it.
struct Machine {
  RaplTree tree;
  std::atomic<double> longest_pause{0};  ///< s in which its counters stood still, because other work had the processor
  double written = 0;
  Writer writer{[this] {
    const double now = host_seconds();
    tree.energy("intel-rapl:0", 80 * now);
    tree.energy("intel-rapl:1", 20 * now);
    if (written > 0) longest_pause = std::max(longest_pause.load(), host_seconds() - written);
    written = now;
    ::usleep(1000);
  }};
};

json document(const TemporaryFolder& folder) { return json::parse(std::ifstream(folder.path() / "e.json")); }

/// Whether the energy is what `watts` need in the program's time.
void expect_power(const Machine& machine, const json& energy, double watts, double seconds) {
  ASSERT_TRUE(energy["joules"].is_number()) << energy;
  EXPECT_NEAR(energy["joules"].get<double>(), watts * seconds,
              energy["half_width"].get<double>() + (0.02 + machine.longest_pause) * watts)
      << energy;
}

TEST(QuietEnergyVerb, MeasuresAProgramThatKeepsItsStreamsAndItsExitCode) {
  Machine machine;
  TemporaryFolder folder;
  const ProcessResult result = ergotune(folder, {"energy", "--sensor", "rapl:package-0", "--idle", "0.5", "-o",
                                                 "e.json", "--", "sh", "-c", "sleep 1.5; echo out; exit 3"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_EQ(result.out, "out\n");
  const json energy = document(folder);
  EXPECT_EQ(energy["exit_code"], 3);
  EXPECT_EQ(energy["command"], json({"sh", "-c", "sleep 1.5; echo out; exit 3"}));
  EXPECT_GE(energy["seconds"].get<double>(), 1.5);
  expect_power(machine, energy, 80, energy["seconds"]);
  EXPECT_NEAR(energy["above_idle"].get<double>(), 0,
              energy["above_idle_half_width"].get<double>() + 0.02 * 80 * energy["seconds"].get<double>());
  EXPECT_EQ(energy["sensors"][0]["sensor"], "rapl:package-0");
}

TEST(QuietEnergyVerb, AddsTheSensorsOfTheMachineEachOnce) {
  Machine machine;
  TemporaryFolder folder;
  EXPECT_EQ(ergotune(folder, {"energy", "-o", "e.json", "--", "sleep", "1"}).exit_code, 0);
  const json all = document(folder);
  EXPECT_EQ(all["sensors"].size(), 1u) << all;
  expect_power(machine, all, 100, all["seconds"]);
  EXPECT_EQ(ergotune(folder, {"energy", "--sensor", "rapl:package-0", "--sensor", "rapl:package-1", "-o", "e.json",
                              "--", "sleep", "1"})
                .exit_code,
            0);
  const json both = document(folder);
  ASSERT_EQ(both["sensors"].size(), 2u);
  expect_power(machine, both["sensors"][0], 80, both["seconds"]);
  expect_power(machine, both["sensors"][1], 20, both["seconds"]);
  expect_power(machine, both, 100, both["seconds"]);
}

TEST(EnergyVerb, BoundsAProgramThatIsTooShort) {
  TemporaryFolder folder;
  const ProcessResult result = ergotune(
      folder,
      {"energy", "--sensor", "command:sh -c 'while :; do echo 50; sleep 0.05; done'", "-o", "e.json", "--", "true"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(document(folder)["joules"].is_null());
}

TEST(QuietEnergyVerb, AddsTheNodesOfAParallelProgram) {
  Machine machine;
  TemporaryFolder folder;
  const auto energy = [&](const std::string& first, const std::string& second, const std::string& script) {
    return ergotune(
        folder, {"energy", "--sensor", "rapl:package-0", "--node-command", "{} --node " + first, "--node-command",
                 "{} --node " + second, "--price", "0.25", "--co2", "400", "-o", "e.json", "--", "sh", "-c", script});
  };
  const ProcessResult result = energy("a", "b", "sleep 1.5; exit 3");
  EXPECT_EQ(result.exit_code, 3) << result.err;
  const json both = document(folder);
  ASSERT_EQ(both["nodes"].size(), 2u) << both;
  for (const json& node : both["nodes"]) expect_power(machine, node, 80, node["seconds"]);
  EXPECT_EQ(both["nodes"][1]["node"], "b");
  expect_power(machine, both, 160, both["seconds"]);
  EXPECT_NEAR(both["kwh"].get<double>(), both["joules"].get<double>() / 3.6e6, 1e-12);
  EXPECT_NEAR(both["cost"].get<double>(), 0.25 * both["kwh"].get<double>(), 1e-12);
  EXPECT_NEAR(both["co2_kg"].get<double>(), 0.4 * both["kwh"].get<double>(), 1e-12);

  EXPECT_EQ(energy("a", "a", "true").exit_code, 2) << "one node would count twice";
  const std::string lost = "lost-" + std::to_string(::getpid());
  EXPECT_EQ(energy("a", lost, "kill $(pgrep -f -- '--node " + lost + "$'); sleep 1").exit_code, 0)
      << "the program's own, whatever becomes of a node";
  const json rest = document(folder);
  EXPECT_TRUE(rest["joules"].is_null()) << "no total without one of the nodes: " << rest;
  EXPECT_TRUE(rest["nodes"][1].contains("error")) << rest;
  expect_power(machine, rest["nodes"][0], 80, rest["nodes"][0]["seconds"]);
}

TEST(EnergyVerb, RefusesWhatItCannotMeasure) {
  Machine machine;
  TemporaryFolder folder;
  const auto code = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "energy");
    return ergotune(folder, arguments).exit_code;
  };
  EXPECT_EQ(code({"--sensor", "rapl:packages", "--sensor", "rapl:package-0", "--", "true"}), 2);
  EXPECT_EQ(code({"--sensor", "rapl:package-0", "--sensor", "rapl:package-0", "--", "true"}), 2);
  EXPECT_EQ(code({"--sensor", "rapl:package-7", "--", "true"}), 2);
  EXPECT_EQ(code({"--idle", "0", "--", "true"}), 2);
  EXPECT_EQ(code({"--", "/nothing/there"}), 2);
  EXPECT_EQ(code({}), 2);
}

}  // namespace
}  // namespace ergotune::test
