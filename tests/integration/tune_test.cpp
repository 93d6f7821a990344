// The command `tune` from outside: every way to fail has its label, a resume runs nothing again, and the
// documents are what the contract says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/support/command.hpp"
#include "problem/tables/setting_table.hpp"

namespace ergotune::test {
namespace {

using ::testing::HasSubstr;

TEST(Tune, EveryFailureIsLabelledAndAResumeRunsNoneAgain) {
  TemporaryFolder folder;
  folder.write("faults.toml", faults_problem());
  const std::vector<std::string> command{
      "tune",    "faults.toml", "--device",     "host",   "--strategy",  "brute_force", "--time-limit", "2",
      "--store", "faults.db",   "--no-confirm", "--json", "--precision", "1000%"};  // a busy machine converges too
  const ProcessResult first = ergotune(folder, command);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const auto document = json_of(first);
  EXPECT_EQ(document["evaluated"], 10);
  EXPECT_EQ(document["statuses"]["ok"], 3);
  const std::map<std::string, std::string> expected{{"[\"good\"]", "ok"},
                                                    {"[\"compile_error\"]", "compile_error"},
                                                    {"[\"segfault\"]", "runtime_error"},
                                                    {"[\"endless\"]", "timeout"},
                                                    {"[\"wrong\"]", "wrong_result"},
                                                    {"[\"memory\"]", "runtime_error"},
                                                    {"[\"aborted\"]", "runtime_error"},
                                                    {"[\"ended\"]", "runtime_error"},
                                                    {"[\"prints\"]", "ok"},
                                                    {"[\"better\"]", "ok"}};
  const auto rows = stored_rows(folder.path() / "faults.db");
  EXPECT_EQ(rows.size(), expected.size());
  for (const auto& [configuration, status] : expected) {
    ASSERT_TRUE(rows.contains(configuration)) << configuration;
    EXPECT_THAT(rows.at(configuration), ::testing::ElementsAre(status)) << configuration;
  }
  EXPECT_EQ(document["best"]["configuration"]["mode"], "better");

  const ProcessResult second = ergotune(folder, command);
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(json_of(second)["evaluated"], 0);
  EXPECT_EQ(json_of(second)["best"]["configuration"]["mode"], "better");
  EXPECT_EQ(stored_rows(folder.path() / "faults.db"), rows);
}

/// The result of a search for X from 1 to 60, in whose store are times of all of them and nothing else.
nlohmann::json after_times(double (*time_of)(int), const std::string& objective, const std::string& budget) {
  TemporaryFolder folder;
  std::string rows = "X,time\n", values;
  for (int x = 1; x <= 60; ++x) {
    rows += std::to_string(x) + "," + std::to_string(time_of(x)) + "\n";
    values += (x > 1 ? ", " : "") + std::to_string(x);
  }
  folder.write("times.csv", rows);
  folder.write("p.toml", "name = \"p\"\nobjective = \"" + objective + "\"\n[parameters]\nX = [" + values + R"(]
[kernel]
function = "f"
arguments = [{ name = "x", type = "float32", count = 64, access = "write" }]
launch = { grid = [64], block = [64] }
source.opencl = { text = "kernel void f(global float* x) { x[0] = X; }" }
[metrics]
steps_per_joule = "X / energy"
)");
  const ProcessResult imported = ergotune(folder, {"import", "times.csv", "--store", "s.db", "--name", "p"});
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  const ProcessResult result = ergotune(folder, {"tune", "p.toml", "--device", "sim:a100", "--prior", "auto",
                                                 "--budget", budget, "--store", "s.db", "--json", "-q"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return json_of(result);
}

TEST(Tune, APriorByTimeAloneStartsASearchForEnergy) {
  const auto document = after_times([](int x) { return 1e-3 * (1 + std::abs(x - 40)); }, "energy", "10");
  EXPECT_THAT(document["explanation"].get<std::string>(), HasSubstr("session 1"));
}

// A launch of X steps takes longer the more steps it does, but not each step. The best of the prior comes after the
// default.
TEST(Tune, APriorByTimeAloneIsJudgedByTheMetricOfTheSearch) {
  const auto document = after_times([](int x) { return 1e-3 * (1 + 0.5 * x); }, "max steps_per_joule", "2");
  EXPECT_EQ(document["best"]["configuration"]["X"], 60);
}

std::string watched_problem(const std::string& observer) {
  return "observe = \"" + observer + R"("
[parameters]
twice = [1, 2]
[kernel]
function = "f"
source.c.text = "void f(float* y) { for (int i = 0; i < 64 * twice; ++i) y[i % 64] = i % 64; }"
arguments = [{ name = "y", type = "float32", count = 64, access = "write" }]
launch = { global = [64], block = [64] }
[observers]
host_time = { passes = 4 }
)";
}

TEST(Tune, ObserversCanBeRequestedForOnTheCommandLine) {
  TemporaryFolder folder;
  folder.write("c.toml", counting_problem(2));
  std::vector<std::string> command{"measure", "c.toml", "--device", "host", "--store", "m.db", "--json"};
  EXPECT_FALSE(json_of(ergotune(folder, command))["quantities"].contains("host_time"));
  command.insert(command.end(), {"--observe", "host_time:passes=4", "--observe", "launches"});
  // What was stored without them does not say what they see: it is not handed out.
  const auto quantities = json_of(ergotune(folder, command))["quantities"];
  EXPECT_EQ(quantities["host_time"]["n"], 4);
  EXPECT_GT(quantities["launches"]["value"].get<double>(), 2);
  folder.write("watched.toml", watched_problem("launches"));
  const auto again = json_of(
      ergotune(folder, {"measure", "watched.toml", "--device", "host", "--observe", "host_time:passes=6", "--json"}));
  EXPECT_EQ(again["quantities"]["host_time"]["n"], 6) << "the command line wins over the file";
  for (const auto& [observer, words] :
       std::map<std::string, std::string>{{"host_tiem", "unknown observer \"host_tiem\" (did you mean \"host_time\"?)"},
                                          {"host_time:pases=4", "(did you mean \"passes\"?)"},
                                          {"host_time:4", "NAME:OPTION=VALUE"}}) {
    const ProcessResult result = ergotune(folder, {"tune", "c.toml", "--device", "host", "--observe", observer});
    EXPECT_EQ(result.exit_code, 2) << observer;
    EXPECT_THAT(result.err, HasSubstr(words));
  }
  EXPECT_THAT(ergotune(folder, {"tune", "--help"}).out, HasSubstr("host_time"));
}

TEST(Tune, OnlyWhatDeterminesResultsMeasuresAnew) {
  TemporaryFolder folder;
  folder.write("c.toml", counting_problem(2));
  const auto is_known = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command{"measure", "c.toml", "--device", "host", "--store", "m.db"};
    command.insert(command.end(), more.begin(), more.end());
    const ProcessResult result = ergotune(folder, command);
    EXPECT_NE(result.exit_code, 2) << result.err;  // 1: too noisy to be told, on a busy machine, but measured
    return result.err.find("this was measured before") != std::string::npos;
  };
  EXPECT_FALSE(is_known({}));
  EXPECT_TRUE(is_known({"--time-limit", "1min", "--no-cache", "--warm-up", "1"}));
  EXPECT_FALSE(is_known({"--warm-up", "3"}));
  EXPECT_FALSE(is_known({"--sensor", "command:while :; do echo 40; sleep 0.005; done"}));
  EXPECT_FALSE(is_known({"--sensor", "command:while :; do echo 40; sleep 0.005; done", "--reference", "0.5"}))
      << "a short measurement is not told for a long one";
}

// Energy that is known too badly is no answer: quiet.
TEST(Tune, EverySettingIsAnOption) {
  TemporaryFolder folder;
  folder.write("c.toml", counting_problem(3));
  const std::string help = ergotune(folder, {"tune", "--help"}).out;
  const std::map<std::string, std::string> values{
      {"device", "host"},     {"objective", "max 1/time"},
      {"precision", "200%"},  {"strategy", "brute_force"},
      {"store", "s.db"},      {"sensors", "command:while :; do echo 40; sleep 0.005; done"},
      {"cache_dir", "cache"}, {"strategy_options", ""},
      {"controls", ""},       {"plan", ""},
      {"occupancy", ""},      {"prior", ""},
      {"node_commands", ""},  {"nodes", ""}};
  std::vector<std::string> command{"tune", "c.toml", "--json"};
  for (const Setting& setting : setting_table()) {
    const std::string option(setting.option.substr(setting.option.rfind(',') + 1));
    EXPECT_THAT(help, HasSubstr(option + " "));
    const auto value = values.find(std::string(setting.name));
    if (value != values.end() && value->second.empty()) continue;
    command.push_back(option);
    if (!setting.is_flag()) command.push_back(value == values.end() ? "2" : value->second);
  }
  const ProcessResult result = ergotune(folder, command);
  ASSERT_NE(result.exit_code, 2) << result.err;  // 1 if no energy is known, on a busy machine
  const auto document = json_of(result);
  EXPECT_EQ(document["objective"]["direction"], "max");
  EXPECT_EQ(document["evaluated"], 2) << "the budget";
  EXPECT_EQ(document["store"], "s.db");
}

TEST(Tune, AChangedKernelDoesNotReuseResults) {
  TemporaryFolder folder;
  folder.write("c.toml", counting_problem(3));
  const std::vector<std::string> command{"tune",        "c.toml",  "--device", "host",         "--strategy",
                                         "brute_force", "--store", "c.db",     "--no-confirm", "--json"};
  EXPECT_EQ(json_of(ergotune(folder, command))["evaluated"], 3);
  EXPECT_EQ(json_of(ergotune(folder, command))["evaluated"], 0);
  std::string changed = counting_problem(3);
  changed.replace(changed.find("1000 * turn"), 11, "1100 * turn");
  folder.write("c.toml", changed);
  EXPECT_EQ(json_of(ergotune(folder, command))["evaluated"], 3);
  auto afresh = command;
  afresh.push_back("--no-resume");
  EXPECT_EQ(json_of(ergotune(folder, afresh))["evaluated"], 3);
  auto other_objective = command;
  other_objective.insert(other_objective.end(), {"--objective", "max 1/time"});
  EXPECT_EQ(json_of(ergotune(folder, other_objective))["evaluated"], 0) << "the objective does not change results";
}

TEST(Tune, AChangedIncludeIsCompiledAgain) {
  TemporaryFolder folder;
  std::string text = counting_problem(1);
  text.replace(text.find("static volatile"), 0, "#include \"values.h\"\n");
  text.replace(text.find("b[i] = a[i]"), 11, "b[i] = VALUE");
  folder.write("c.toml", text);
  folder.write("values.h", "#define VALUE 1\n");
  const std::vector<std::string> command{"tune",        "c.toml",  "--device", "host",         "--strategy",
                                         "brute_force", "--store", "c.db",     "--no-confirm", "--json"};
  EXPECT_EQ(json_of(ergotune(folder, command))["evaluated"], 1);
  folder.write("values.h", "#define VALUE broken\n");
  const auto document = json_of(ergotune(folder, command));
  EXPECT_EQ(document["evaluated"], 1);
  EXPECT_EQ(document["statuses"]["compile_error"], 1);
}

TEST(Tune, WhenNothingWorksItSaysSoWithTheCompilersWords) {
  TemporaryFolder folder;
  std::string text = counting_problem(3);
  text.replace(text.find("static volatile"), 0, "#error no such luck\n");
  folder.write("c.toml", text);
  const ProcessResult result =
      ergotune(folder, {"tune", "c.toml", "--device", "host", "--strategy", "brute_force", "--no-store"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("No configuration worked"));
  EXPECT_THAT(result.out, HasSubstr("no such luck"));
  const ProcessResult one = ergotune(folder, {"measure", "c.toml", "--device", "host", "--json"});
  EXPECT_EQ(one.exit_code, 1) << one.err;
  EXPECT_EQ(json_of(one)["status"], "compile_error");
}

TEST(Tune, MistakesAreOneMessageAndExitCodeTwo) {
  TemporaryFolder folder;
  folder.write("c.toml", counting_problem(3));
  const auto refuse = [&](std::vector<std::string> options, const std::string& words) {
    options.insert(options.begin(), {"tune", "c.toml", "--no-store"});
    const ProcessResult result = ergotune(folder, options);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr(words));
    EXPECT_EQ(result.out, "");
  };
  refuse({"--device", "host", "--budget", "10 parsecs"}, "the budget \"10 parsecs\" is none");
  refuse({"--device", "hots"}, "there is no device \"hots\"");
  refuse({"--device", "host", "--strategy", "randon"}, "random");
  refuse({"--device", "host", "--objective", "time +"}, "time +");
  refuse({"--device", "host", "--precision", "0"}, "precision");
}

TEST(Tune, GpusOfDifferentKindsAreASessionEachAndNeverRanked) {
  TemporaryFolder folder;
  const std::string gemm = ERGOTUNE_SOURCE_DIR "/examples/gemm/gemm.toml";
  const auto document = json_of(ergotune(folder, {"tune", gemm, "--device", "sim:a100,sim:h100,sim:a100", "--budget",
                                                  "20", "--store", "s.db", "--wisdom", "w", "--json"}));
  ASSERT_EQ(document["sessions"].size(), 2u) << document;
  for (const auto& session : document["sessions"]) EXPECT_EQ(session["evaluated"], 20) << session;
  EXPECT_EQ(document["sessions"][0]["devices"].size(), 2u) << "two of one kind share its session";
  EXPECT_EQ(json_of(ergotune(folder, {"show", "s.db", "--sessions", "--json"}))["sessions"].size(), 2u);
  EXPECT_EQ(json_of(ergotune(folder, {"wisdom", "list", "w", "--json"}))["records"].size(), 2u);
}

TEST(Tune, EachBlockOfASimulatedResultIsMarked) {
  TemporaryFolder folder;
  const std::string gemm = ERGOTUNE_SOURCE_DIR "/examples/gemm/gemm.toml";
  const auto result = ergotune(folder, {"tune", gemm, "--device", "sim:a100,sim:a100", "--budget", "40", "--no-store"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("(simulated)")) << "progress";
  for (const std::string heading : {"Outcomes", "Next best", "What matters", "Devices"}) {
    const std::size_t at = result.out.find("\n" + heading);
    ASSERT_NE(at, std::string::npos) << heading << result.out;
    EXPECT_THAT(result.out.substr(at, result.out.find(':', at) - at), HasSubstr("(simulated")) << heading;
  }
}

TEST(Analyse, EachBlockOfASimulatedSpaceIsMarked) {
  TemporaryFolder folder;
  const auto result =
      ergotune(folder, {"analyse", ERGOTUNE_SOURCE_DIR "/examples/gemm/gemm.toml", "--device", "sim:a100"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (std::size_t at = 0; at < result.out.size();) {
    const std::size_t end = std::min(result.out.find("\n\n", at), result.out.size());
    EXPECT_THAT(result.out.substr(at, result.out.find('\n', at) - at), HasSubstr("(simulated)"));
    at = end + 2;
  }
}

TEST(Tune, SourcesAreReadForMistakesOnSimulatedDevicesToo) {
  TemporaryFolder folder;
  folder.write(
      "p.toml",
      "[parameters]\nTILE = [8, 16]\n[kernel]\nfunction = 'f<{{TILE}}>'\narguments = [{ name = 'x', type = "
      "'float32', count = 64, access = 'write' }]\nlaunch = { grid = 1, block = 32 }\n[kernel.source.cuda]\n"
      "text = 'struct S { float a, b; }; template <int T> __global__ void f(float* x) { extern __shared__ S s[]; "
      "s[T].a = 1; x[T] = s[T].a; }'\n");
  const ProcessResult result = ergotune(folder, {"tune", "p.toml", "--device", "sim:h100", "--no-store"});
  EXPECT_THAT(result.err, HasSubstr("shared_memory_bytes")) << "of a structure in a template";
}

TEST(Tune, ASearchForEnergyShowsWhatItsBestCostsInTime) {
  TemporaryFolder folder;
  const std::string gemm = ERGOTUNE_SOURCE_DIR "/examples/gemm/gemm.toml";
  const auto time_line = [&](const std::string& objective) {
    const ProcessResult result = ergotune(
        folder, {"tune", gemm, "--device", "sim:a100", "--objective", objective, "--budget", "40", "--no-store"});
    return result.out.find("\n  takes ") != std::string::npos;
  };
  EXPECT_TRUE(time_line("energy"));
  EXPECT_FALSE(time_line("time"));
}

TEST(Tune, InProcessMeasuresTheSameWay) {
  TemporaryFolder folder;
  folder.write("c.toml", counting_problem(3));
  const auto document = json_of(ergotune(folder, {"tune", "c.toml", "--device", "host", "--strategy", "brute_force",
                                                  "--in-process", "--no-store", "--json"}));
  EXPECT_EQ(document["evaluated"], 3);
  EXPECT_EQ(document["best"]["configuration"]["turn"], 1);
}

TEST(Measure, OneConfiguration) {
  TemporaryFolder folder;
  folder.write("c.toml", counting_problem(3));
  const auto document =
      json_of(ergotune(folder, {"measure", "c.toml", "--device", "host", "--config", "{\"turn\": 2}", "--json"}));
  EXPECT_EQ(document["configuration"]["turn"], 2);
  EXPECT_GT(document["quantities"]["time"]["value"].get<double>(), 0);
  const ProcessResult unknown =
      ergotune(folder, {"measure", "c.toml", "--device", "host", "--config", "{\"trun\": 2}"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean \"turn\""));
  const ProcessResult outside =
      ergotune(folder, {"measure", "c.toml", "--device", "host", "--config", "{\"turn\": 77}"});
  EXPECT_EQ(outside.exit_code, 2);
  EXPECT_THAT(outside.err, HasSubstr("turn=77"));
}

}  // namespace
}  // namespace ergotune::test
