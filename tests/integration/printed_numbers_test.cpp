// What is printed of results and how: one interval everywhere, the numbers of the objective, lines that fit.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

using testing::HasSubstr;

constexpr double kT2 = 4.302652729911275;  // Student's t, 97.5 %, two degrees of freedom

std::string line_with(const std::string& text, const std::string& word) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find(word) != std::string::npos) return line;
  return {};
}

// Three runs: the interval that is judged is the one in --json, in the store, on the page and in the table.
TEST(PrintedNumbers, AnIntervalIsTheSameEverywhere) {
  TemporaryFolder folder;
  folder.write(
      "p.toml",
      "name = \"p\"\nobjective = \"time\"\n[parameters]\nA = [1]\n[program]\n"
      "command = [\"sh\", \"-c\", \"n=$(cat {{folder}}/n); echo $((n + 1)) > {{folder}}/n; echo time: 1.${n}e-6\"]\n"
      "output = { time = 'time: (\\S+)' }\n[metrics]\nrate = \"100 / time\"\n");
  folder.write("n", "1\n");
  const auto tuned = json_of(ergotune(folder, {"tune", "p.toml", "--store", "p.db", "--no-confirm", "--precision",
                                               "1e-6", "--max-seconds", "1e-6", "--max-repeats", "3", "-q", "--json"}));
  const auto& time = tuned["top"][0]["quantities"]["time"];
  ASSERT_EQ(time["n"], 3) << tuned;
  const double half_width = time["half_width"].get<double>(), value = time["value"].get<double>();
  EXPECT_NEAR(half_width, kT2 * time["standard_error"].get<double>(), 1e-9);
  const auto shown = json_of(ergotune(folder, {"show", "p.db", "--json"}));
  EXPECT_DOUBLE_EQ(shown["best"]["quantities"]["time"]["half_width"].get<double>(), half_width);
  const auto page = json_of(ergotune(folder, {"show", "p.db", "--json", "--page"}))["page"]["document"];
  EXPECT_NEAR(page["best"]["half_width"].get<double>(), half_width, 1e-6 * half_width) << page["best"];
  const std::string table = ergotune(folder, {"show", "p.db"}).out;
  EXPECT_THAT(table, HasSubstr(fmt::format("±{:.1f} %", 100 * half_width / value)));
  EXPECT_THAT(tuned["top"][0]["message"].get<std::string>(),
              HasSubstr(fmt::format("+-{:.2g} %", 100 * half_width / value)));
  // A metric of one quantity has its relative interval.
  const auto by_metric =
      json_of(ergotune(folder, {"show", "p.db", "--json", "--page", "--objective", "max rate"}))["page"]["document"];
  EXPECT_NEAR(by_metric["best"]["half_width"].get<double>() / by_metric["best"]["objective"].get<double>(),
              half_width / value, 0.02 * half_width / value);
}

TEST(PrintedNumbers, AFrontShowsBothObjectivesAndAWinnerWhatWasOptimised) {
  TemporaryFolder folder;
  folder.write("s.toml",
               "name = \"s\"\nobjective = \"max score\"\n[parameters]\nA = [1, 7]\n[program]\n"
               "command = [\"echo\", \"score: 10{{A}}\"]\noutput = { score = 'score: (\\S+)' }\n"
               "[metrics]\nye = \"30 - A\"\n");
  const std::vector<std::string> common{"--no-store",    "--no-confirm", "--precision", "1000%",
                                        "--max-seconds", "0.01",         "-q"};
  const auto tune = [&](const std::string& objective) {
    std::vector<std::string> strings{"tune", "s.toml", "--objective", objective};
    strings.insert(strings.end(), common.begin(), common.end());
    return ergotune(folder, strings).out;
  };
  EXPECT_THAT(line_with(tune("max score"), "score  "), HasSubstr("107"));
  EXPECT_THAT(line_with(tune("max 2 * score"), "2 * score"), HasSubstr("214"));
  const std::string front = tune("pareto(max score, min ye)");
  EXPECT_THAT(line_with(front, "A=7"), HasSubstr("score 107"));
  EXPECT_THAT(line_with(front, "A=7"), HasSubstr("ye 23"));
}

TEST(PrintedNumbers, TheTableOfStoredResultsShowsWhatTheyAreRankedBy) {
  TemporaryFolder folder;
  folder.write("s.toml",
               "objective = \"max score\"\n[parameters]\nA = [1, 7]\n[program]\n"
               "command = [\"echo\", \"score: 10{{A}}\"]\noutput = { score = 'score: (\\S+)' }\n"
               "[metrics]\nye = \"30 - A\"\n");
  ASSERT_EQ(ergotune(folder, {"tune", "s.toml", "--store", "s.db", "--no-confirm", "--precision", "1000%",
                              "--max-seconds", "0.01", "-q"})
                .exit_code,
            0);
  const std::string header = line_with(ergotune(folder, {"show", "s.db"}).out, " #");
  EXPECT_LT(header.find("score"), header.find("time")) << header;
  const std::string by_metric = line_with(ergotune(folder, {"show", "s.db", "--objective", "min 2 * ye"}).out, " #");
  EXPECT_LT(by_metric.find("ye"), by_metric.find("time")) << by_metric;
}

TEST(PrintedNumbers, TheEnergiesOfAPlanTableGoWithTheirPercentages) {
  TemporaryFolder folder;
  const std::string file = std::string(ERGOTUNE_SOURCE_DIR) + "/examples/clocks/simulated_capping.toml";
  const std::vector<std::string> strings{
      "tune", file, "--device", "sim:rtx_a4000", "--plan", "code_and_limits,race_to_idle", "--no-store", "-q"};
  std::vector<std::string> as_json = strings;
  as_json.push_back("--json");
  const auto document = json_of(ergotune(folder, as_json, 120));
  const double optimum = document["optimum_energy"].get<double>();
  for (const auto& plan : document["plans"]) {
    EXPECT_NEAR(100 * (plan["true_energy"].get<double>() / optimum - 1), plan["above_optimum_percent"].get<double>(),
                1e-9);
    EXPECT_EQ(plan["asked"].get<int>(), plan["evaluated"].get<int>() + plan["known"].get<int>());
  }
  EXPECT_GT(document["plans"][0]["best"]["configuration"]["power_limit_w"].get<double>(), 0) << "limits were varied";
  EXPECT_EQ(document["plans"][0]["stages"].back()["by_setting"].size(), 5u);
}

}  // namespace
}  // namespace ergotune::test
