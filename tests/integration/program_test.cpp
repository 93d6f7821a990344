// Whole programs, from outside: real programs of this system, a compiler, a fake GPU, a fake counter of energy.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/process/process.hpp"
#include "ergotune/random.hpp"
#include "fakes/sysfs_trees/sysfs_trees.hpp"
#include "integration/support/command.hpp"
#include "integration/support/fake_gpu.hpp"
#include "program/supervisor.hpp"

namespace ergotune::test {
namespace {

using testing::HasSubstr;

/// A word that no other process has in its command line.
std::string unique_word(const char* name) { return fmt::format("ergotune-{}-{}", name, ::getpid()); }

bool is_gone(const std::string& word, double seconds = 10) {
  for (const double deadline = host_seconds() + seconds; some_process_mentions(word); ::usleep(20'000))
    if (host_seconds() > deadline) return false;
  return true;
}

SupervisedRun shell(const std::string& script, double limit = 0) {
  SupervisedRun run;
  run.arguments = {"sh", "-c", script};
  run.time_limit = limit;
  return run;
}

TEST(Supervisor, LeavesNothingBehind) {
  Supervisor supervisor({ergotune_program(), "supervise"});
  const std::string word = unique_word("daemon");
  // A daemon in a session of its own, whose parent has gone.
  const std::string daemon = fmt::format("setsid sh -c 'sleep 1000; : {0}' >/dev/null 2>&1 &", word);
  const SupervisedResult left = supervisor.run(shell(daemon + " sleep 0.1; echo done"));
  EXPECT_EQ(left.exit_code, 0);
  EXPECT_EQ(left.out, "done\n");
  EXPECT_GE(left.left_behind, 1);
  EXPECT_TRUE(is_gone(word, 1));
  const SupervisedResult late = supervisor.run(shell(daemon + "(trap '' TERM; sleep 1000) & sleep 1000", 0.3));
  EXPECT_TRUE(late.timed_out);
  EXPECT_LT(late.end - late.begin, 20);
  EXPECT_TRUE(is_gone(word, 1));
  std::thread killer([&] {
    ::usleep(300'000);
    supervisor.stop();
  });
  const SupervisedResult stopped = supervisor.run(shell(daemon + "sleep 1000"));
  killer.join();
  EXPECT_TRUE(stopped.stopped);
  EXPECT_TRUE(is_gone(word, 1));
  EXPECT_EQ(supervisor.run(shell("exit 3")).exit_code, 3) << "and runs on";
  supervisor.stop();
  EXPECT_TRUE(supervisor.run(shell("exit 3")).stopped) << "between two runs the next one is meant";
  supervisor.stop();
  EXPECT_EQ(supervisor.run(shell("exit 3")).exit_code, 3) << "nothing runs and nothing is to be stopped";
  supervisor.stop();
  supervisor.forget_stop();
  EXPECT_EQ(supervisor.run(shell("exit 3")).exit_code, 3);
}

TEST(Supervisor, KeepsTheEndOfWhatWasSaidAndSaysHowItWent) {
  Supervisor supervisor({ergotune_program(), "supervise"});
  SupervisedRun much = shell("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; echo last >&2");
  much.kept_bytes = 100;
  const SupervisedResult result = supervisor.run(much);
  EXPECT_EQ(result.out.size(), 100u);
  EXPECT_THAT(result.out, testing::EndsWith("line 2999\n"));
  EXPECT_GT(result.out_bytes, 20000u);
  EXPECT_EQ(result.err, "last\n");
  EXPECT_GT(result.peak_bytes, 100'000u);
  EXPECT_EQ(supervisor.run(shell("kill -SEGV $$")).signal, SIGSEGV);
  EXPECT_EQ(supervisor.run(shell("read line && echo $line || echo nothing; tty")).out, "nothing\nnot a tty\n");
  SupervisedRun missing;
  missing.arguments = {"/nowhere/at/all"};
  EXPECT_THAT(supervisor.run(missing).not_started, HasSubstr("No such file"));
  const SupervisedResult busy = supervisor.run(shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"));
  EXPECT_GT(busy.cpu_seconds, 0.3 * (busy.end - busy.begin) * 0.05);
}

std::vector<std::string> tune(const std::string& file, std::vector<std::string> more = {}) {
  std::vector<std::string> words{"tune", file,          "--strategy", "brute_force", "--max-seconds",
                                 "0.2",  "--precision", "0.5",        "--quiet",     "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const char* const kCompressor = R"toml(
name = "gzip"
objective = "min size"
[parameters]
LEVEL = [1, 9]
[program]
command = ["sh", "-c", "gzip -k -c -{{LEVEL}} {{folder}}/data > {{run}}/out.gz && stat -c 'size: %s' {{run}}/out.gz"]
sources = ["data"]
output = { size = 'size: ([0-9]+)' }
check = { command = ["sh", "-c", "gzip -d -c {{run}}/out.gz | cmp - {{folder}}/data"] }
[metrics]
saved = "1000000 - size"
)toml";

TEST(Program, ACompressorIsTunedCheckedAndFoundAgain) {
  TemporaryFolder folder;
  folder.write("gzip.toml", kCompressor);
  std::string data;
  for (int i = 0; data.size() < 300'000; ++i) data += fmt::format("{} squared is {}\n", i, i * i);
  folder.write("data", data);
  const auto document = json_of(ergotune(folder, tune("gzip.toml", {"--store", "g.db"})));
  EXPECT_EQ(document["evaluated"], 2);
  const auto& best = document["best"];
  EXPECT_EQ(best["configuration"]["LEVEL"], 9);
  EXPECT_EQ(best["quantities"]["size"]["method"], "read from the output");
  EXPECT_GT(best["quantities"]["time"]["value"], 0);
  EXPECT_GT(best["quantities"]["time"]["n"], 2);
  EXPECT_GT(best["quantities"]["peak_memory"]["value"], 100'000);
  EXPECT_EQ(best["metrics"]["saved"].get<double>(), 1e6 - best["quantities"]["size"]["value"].get<double>());
  const auto shown = json_of(ergotune(folder, {"show", "g.db", "--json"}));
  EXPECT_EQ(shown["best"]["configuration"], best["configuration"]) << shown;
  const auto again = json_of(ergotune(folder, tune("gzip.toml", {"--store", "g.db"})));
  EXPECT_EQ(again["evaluated"], 0) << "nothing is measured twice";
  EXPECT_EQ(again["best"]["configuration"], best["configuration"]);
  folder.write("data", data + "more\n");
  EXPECT_EQ(json_of(ergotune(folder, tune("gzip.toml", {"--store", "g.db"})))["evaluated"], 2)
      << "other data, other results";
  const auto one = json_of(ergotune(folder, {"measure", "gzip.toml", "--config", "{\"LEVEL\": 1}", "--json",
                                             "--max-seconds", "0.2", "--precision", "0.5"}));
  EXPECT_TRUE(one["status"] == "ok" || one["status"] == "not_converged")
      << one << " (the second on a machine full of other work)";
}

// The shell's and the compiler's parameters look the same in a header.
TEST(Program, AHeaderNamesTheParametersThatAreNoMacros) {
  TemporaryFolder folder;
  const std::string parameters =
      "[parameters]\nTILE = [8]\nSCHEDULE = [\"dynamic\"]\n[program]\ncommand = [\"true\"]\n";
  const std::string built = parameters + "build = [\"true\", \"-DTILE={{TILE}}\"]\n";
  folder.write("a.toml", built + "environment = { OMP_SCHEDULE = \"{{SCHEDULE}}\" }\n");
  folder.write("b.toml", built + "build_files = { \"config.h\" = \"{{SCHEDULE}}\" }\n");
  for (const std::string name : {"a", "b"}) {
    ASSERT_EQ(ergotune(folder, tune(name + ".toml", {"--store", name + ".db", "--no-confirm"})).exit_code, 0);
    const ProcessResult exported = ergotune(folder, {"export", name + ".db", "--format", "header"});
    EXPECT_EQ(exported.exit_code, 0) << exported.err;
    const std::string comment = exported.out.substr(0, exported.out.find("#ifndef"));
    EXPECT_EQ(comment.find("SCHEDULE") != comment.npos, name == "a") << comment;
    EXPECT_EQ(exported.err.find("SCHEDULE") != exported.err.npos, name == "a") << exported.err;
    EXPECT_EQ(comment.find("TILE"), comment.npos) << comment;
  }
}

const char* const kFailures = R"toml(
name = "failures"
objective = "time"
[parameters]
MODE = ["fine", "crash", "code", "unsupported", "slow", "wrong", "mute", "file", "child"]
[program]
command = ["sh", "{{folder}}/app.sh", "{{MODE}}", "{{run}}"]
output = { rate = 'rate: (\S+)' }
check = { pattern = '^right$', file = "{{run}}/left", reference = "expected" }
exit_status = { 77 = "unsupported" }
time_limit = 0.5
)toml";

const char* const kFailingApp = R"sh(
case $1 in
  crash) echo "about to crash" >&2; kill -SEGV $$;;
  code) echo "no such thing" >&2; exit 4;;
  unsupported) exit 77;;
  slow) sleep 1000;;
  wrong) echo "rate: 1"; exit 0;;
  child) sleep 1000 >/dev/null 2>&1 &;;
esac
[ $1 = file ] || echo 42 > $2/left
[ $1 = mute ] || echo "rate: 12.5"
echo right
)sh";

TEST(Program, EveryFailureIsAStatusWithItsWords) {
  TemporaryFolder folder;
  folder.write("f.toml", kFailures);
  folder.write("app.sh", kFailingApp);
  folder.write("expected", "42\n");
  const auto document = json_of(ergotune(folder, tune("f.toml", {"--store", "f.db", "--no-confirm"})));
  const auto shown = json_of(ergotune(folder, {"show", "f.db", "--failures", "--json"})).dump();
  EXPECT_EQ(document["statuses"]["runtime_error"], 2) << document;
  EXPECT_EQ(document["statuses"]["unsupported"], 1);
  EXPECT_EQ(document["statuses"]["timeout"], 1);
  EXPECT_EQ(document["statuses"]["wrong_result"], 3);
  for (const char* words : {"signal 11", "about to crash", "exit code 4", "no such thing", "ended after 0.5 s",
                            "no line of the output matches", "it left no file"})
    EXPECT_THAT(shown, HasSubstr(words));
  const auto child = json_of(
      ergotune(folder, {"measure", "f.toml", "--config", "{\"MODE\": \"child\"}", "--json", "--max-seconds", "0.1"}));
  EXPECT_THAT(child.dump(), HasSubstr("it left 1 process behind, which was ended"));
}

const char* const kBuilt = R"toml(
name = "built"
objective = "time"
[parameters]
SIZE = [1, 2, 0]
THREADS = [1, 2]
[program]
command = ["./app", "{{run}}/in"]
environment = { THREADS = "{{THREADS}}" }
build = [["sh", "-c", "echo built >> {{folder}}/log"], ["cc", "-I.", "-o", "app", "{{folder}}/app.c"]]
build_files = { "size.h" = "#define SIZE {{SIZE}}\n" }
files = { in = "threads {{THREADS}}\n" }
output = { size = 'size (\d+)', threads = 'threads (\d+)' }
)toml";

const char* const kBuiltApp = R"c(
#include "size.h"
#include <stdio.h>
#include <stdlib.h>
#if SIZE == 0
#error a size of nothing
#endif
int main(int argc, char** argv) {
  char line[100];
  FILE* in = fopen(argv[1], "r");
  if (!in || !fgets(line, sizeof line, in)) return 1;
  printf("size %d %s", SIZE, line);
  return atoi(getenv("THREADS")) != atoi(line + 8);
}
)c";

TEST(Program, IsBuiltOnceForWhatTheStepsName) {
  TemporaryFolder folder;
  folder.write("b.toml", kBuilt);
  folder.write("app.c", kBuiltApp);
  const auto log_lines = [&] {
    const std::string log = read_file(folder.path() / "log").value_or("");
    return std::ranges::count(log, '\n');
  };
  const auto document = json_of(ergotune(folder, tune("b.toml", {"--store", "b.db", "--no-confirm"})));
  EXPECT_EQ(document["statuses"]["compile_error"], 2) << document;
  EXPECT_EQ(document["statuses"]["ok"].get<int>() + document["statuses"].value("not_converged", 0), 4) << document;
  EXPECT_EQ(log_lines(), 3) << "not for each number of threads";
  EXPECT_THAT(document.dump(), HasSubstr("a size of nothing"));
  (void)json_of(ergotune(folder, tune("b.toml", {"--no-store", "--no-confirm"})));
  EXPECT_EQ(log_lines(), 4) << "kept for other sessions; what failed is tried again";
  folder.write("app.c", std::string(kBuiltApp) + "\n");
  (void)json_of(ergotune(folder, tune("b.toml", {"--no-store", "--no-confirm"})));
  EXPECT_EQ(log_lines(), 7) << "a changed source is built anew";
}

/// A processor that draws a constant power, as its counter tells it.
struct Processor {
  RaplTree tree;
  double watts;
  Writer writer;
  explicit Processor(double w)
      : watts(w), writer([this] {
          tree.energy("intel-rapl:0", watts * host_seconds());
          ::usleep(1000);
        }) {
    for (const char* zone :
         {"intel-rapl:1", "intel-rapl:10", "intel-rapl:0:0", "intel-rapl:0:1", "intel-rapl:1:0", "intel-rapl-mmio:0"})
      tree.remove(std::string("/sys/class/powercap/") + zone);
  }
};

TEST(Program, EnergyIsThatOfTheProcessor) {
  Processor processor(80);
  TemporaryFolder folder;
  folder.write("e.toml",
               "name = \"e\"\nobjective = \"energy\"\n[parameters]\nNAP = [0.02, 0.2]\n[program]\ncommand = "
               "[\"sleep\", \"{{NAP}}\"]\n");
  // Long enough that a run which a busy machine holds up is one of many.
  const auto document =
      json_of(ergotune(folder, {"tune", "e.toml", "--strategy", "brute_force", "--max-seconds", "4", "--precision",
                                "0.1", "--min-repeats", "15", "--quiet", "--json", "--no-store", "--no-confirm"}));
  ASSERT_EQ(document["top"].size(), 2u) << document;
  EXPECT_EQ(document["best"]["configuration"]["NAP"], 0.02);
  for (const auto& entry : document["top"]) {
    const auto& q = entry["quantities"];
    EXPECT_NEAR(q["power"]["value"].get<double>(), 80, 8) << entry;
    EXPECT_NEAR(q["energy"]["value"].get<double>(), 80 * q["time"]["value"].get<double>(),
                0.1 * q["energy"]["value"].get<double>());
    EXPECT_EQ(q["energy"]["sensor"], "rapl:package-0");
    EXPECT_GT(q["energy"]["standard_error"].get<double>(), 0);
  }
}

// Energy of a parallel program by the sensors of its nodes; this machine has none.
TEST(Program, NeedsNoSensorWhereItReportsItsEnergy) {
  TemporaryFolder folder;
  const std::string meter = "--sensor \\\"command:sh -c 'while :; do echo 50; sleep 0.05; done'\\\"";
  folder.write(
      "n.toml",
      "name = \"n\"\nobjective = \"energy\"\n[parameters]\nNAP = [0.4, 1.2]\n[program]\ncommand = [\"sh\", \"-c\", \"" +
          ergotune_program() + " energy --node-command '{} --node a' --node-command '{} --node b' " + meter +
          " -o {{run}}/job.json -- sleep {{NAP}} && cat {{run}}/job.json\"]\n"
          "output = { energy = '^  \"joules\": ([0-9.e+]+)' }\n");
  setenv("ERGOTUNE_SYSFS_ROOT", (folder.path() / "nothing").c_str(), 1);
  const ProcessResult result = ergotune(folder, tune("n.toml", {"--no-store", "--no-confirm"}), 240);
  unsetenv("ERGOTUNE_SYSFS_ROOT");
  const auto document = json_of(result);
  EXPECT_EQ(document["best"]["configuration"]["NAP"], 0.4) << result.err;
  EXPECT_NEAR(document["best"]["quantities"]["energy"]["value"].get<double>(), 2 * 50 * 0.4, 8) << document["best"];
}

/// A program that uses the fake GPU: so many cycles of its core clock, and a part that no clock makes faster.
const char* const kGpuApp = R"c(
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  void* library = dlopen(getenv("ERGOTUNE_NVML"), RTLD_NOW);
  if (!library) return 9;
  void (*work)(double, double, double) = (void (*)(double, double, double))dlsym(library, "fake_nvml_work");
  unsigned long long (*calls)(void) = (unsigned long long (*)(void))dlsym(library, "fake_nvml_calls");
  if (!work || !calls) return 8;
  const unsigned long long before = calls();
  work(atof(argv[1]), atof(argv[2]), 1);
  printf("worked\n");
  if (argc > 3) printf("calls: %llu\n", calls() - before);
  return 0;
}
)c";

int kills() {
  const char* text = std::getenv("ERGOTUNE_KILLS");
  return text ? std::atoi(text) : 3;
}

struct ProgramOnABoard : OnFakeGpu {
  ProgramOnABoard() : OnFakeGpu("generation=hopper devices=1") {}
  void SetUp() override {
    OnFakeGpu::SetUp();
    folder.write("app.c", kGpuApp);
    const ProcessResult built = run_process({"cc", "-o", app(), (folder.path() / "app.c").string(), "-ldl"});
    ASSERT_EQ(built.exit_code, 0) << built.err;
  }
  std::string app() const { return (folder.path() / fmt::format("app-{}", ::getpid())).string(); }
  double last_lock() {
    double mhz = 0;
    for (const auto& call : nvml.setter_calls())
      if (std::string(call.function) == "nvmlDeviceSetGpuLockedClocks") mhz = static_cast<double>(call.a);
    return mhz;
  }
  bool is_restored() const { return const_cast<fake_nvml::FakeNvml&>(nvml).gpu().locked == 0; }
};

TEST_F(ProgramOnABoard, FindsTheClockWithLeastEnergyWithinTheSlowdown) {
  const std::vector<std::string> words{"program",
                                       "--control",
                                       "nvml:0",
                                       "--sensor",
                                       "nvml:0/samples",
                                       "--max-slowdown",
                                       "60%",
                                       "--settings",
                                       "4",
                                       "--precision",
                                       "0.2",
                                       "--max-seconds",
                                       "0.4",
                                       "--store",
                                       "p.db",
                                       "--json",
                                       "--",
                                       app(),
                                       "300",
                                       "0.02"};
  const ProcessResult result = ergotune(folder, words, 240);
  const auto document = json_of(result);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(is_restored());
  EXPECT_EQ(document["quantity"], "core_clock_mhz");
  EXPECT_EQ(document["unchanged"]["setting"], 1980);
  EXPECT_LT(document["best"]["setting"].get<double>(), 1980) << document.dump(1);
  double fastest = 1e9;
  for (const auto& tried : document["tried"])
    fastest = std::min(fastest, tried["quantities"]["time"]["value"].get<double>());
  EXPECT_LE(document["best"]["quantities"]["time"]["value"].get<double>(), 1.6 * fastest + 1e-9) << document.dump(1);
  EXPECT_LT(document["energy_ratio"]["value"].get<double>(), 1) << document.dump(1);
  EXPECT_GE(document["confirmation_repeats"].get<int>(), 3);
  EXPECT_LE(document["tried"].size(), 4u);
  EXPECT_THAT(document["set_with"].dump(), HasSubstr("--lock-gpu-clocks"));
  // Nothing is measured twice, and others tell the same winner.
  const double begin = host_seconds();
  const auto again = json_of(ergotune(folder, words, 240));
  EXPECT_EQ(again["best"]["setting"], document["best"]["setting"]);
  EXPECT_EQ(again["best"]["quantities"], document["best"]["quantities"]);
  EXPECT_LT(host_seconds() - begin, 20);
  const auto shown = json_of(ergotune(folder, {"show", "p.db", "--json"}));
  EXPECT_EQ(shown["best"]["configuration"]["core_clock_mhz"], document["best"]["setting"]) << shown["best"];
  // As wisdom of this GPU it is put into force for the program.
  const char* uuid = "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0";  // the fake CUDA driver's
  std::snprintf(nvml.gpu().uuid, sizeof nvml.gpu().uuid, "%s", uuid);
  setenv("ERGOTUNE_CUDA", ERGOTUNE_BINARY_DIR "/tests/fakes/cuda/libcuda.so.1", 1);
  std::vector<std::string> with_wisdom = words;
  with_wisdom.insert(with_wisdom.begin() + 1, {"--wisdom", "w"});
  const ProcessResult written = ergotune(folder, with_wisdom, 240);
  EXPECT_EQ(written.exit_code, 0) << written.err;
  const ProcessResult set = run_process({"sh", "-c", json_of(written)["run_with"].get<std::string>()},
                                        {{{"PATH", ERGOTUNE_BINARY_DIR ":/usr/bin:/bin"}}, folder.path().string()});
  unsetenv("ERGOTUNE_CUDA");
  EXPECT_EQ(set.exit_code, 0) << set.err;
  EXPECT_EQ(set.out, "worked\n");
  EXPECT_EQ(last_lock(), document["best"]["setting"]) << set.err;
  EXPECT_TRUE(is_restored());
}

/// Two nodes, each with a GPU, and a program of two ranks that Open MPI starts, one on each.
struct ParallelProgram : ProgramOnABoard {
  fake_nvml::FakeNvml second{"generation=hopper devices=1"};
  std::vector<std::string> nodes, ranks;
  void SetUp() override {
    if (run_process({"sh", "-c", "command -v mpirun"}).exit_code != 0)
      GTEST_SKIP() << "mpirun is not installed (package openmpi-bin)";
    ProgramOnABoard::SetUp();
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    const std::string there = fmt::format("ERGOTUNE_FAKE_NVML_STATE={}", second.path());
    nodes = {"--node-command", "{} --node a", "--node-command",
             fmt::format("env {} ERGOTUNE_STATE_DIR={} {{}} --node b", there, (folder.path() / "b").string())};
    ranks = {"mpirun",
             "--oversubscribe",
             "-n",
             "2",
             "sh",
             "-c",
             fmt::format("[ $OMPI_COMM_WORLD_RANK = 0 ] || export {}; exec {} 300 0.02", there, app())};
  }
  std::vector<std::string> verb(std::vector<std::string> words) const {
    words.insert(words.end(), nodes.begin(), nodes.end());
    words.push_back("--");
    words.insert(words.end(), ranks.begin(), ranks.end());
    return words;
  }
};

TEST_F(ParallelProgram, HasTheEnergyOfAllRanksAndOfEachNode) {
  const ProcessResult result = ergotune(folder, verb({"energy", "--sensor", "nvml:0/samples", "-o", "e.json"}), 120);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto document = nlohmann::json::parse(read_file(folder.path() / "e.json").value_or("null"));
  ASSERT_EQ(document["nodes"].size(), 2u) << document.dump(1);
  double sum = 0;
  for (const auto& node : document["nodes"]) sum += node["joules"].get<double>();
  EXPECT_NEAR(document["joules"].get<double>(), sum, 1e-9 * sum);
  EXPECT_GT(nvml.gpu().work_done, 0) << "rank 0";
  EXPECT_GT(second.gpu().work_done, 0) << "rank 1";
}

/// Energies of runs that others prolong say little about clocks.
struct QuietParallelProgram : ParallelProgram {};

TEST_F(QuietParallelProgram, HasOneSettingOnAllNodes) {
  const std::vector<std::string> words =
      verb({"program", "--control", "nvml:0", "--sensor", "nvml:0/samples", "--max-slowdown", "60%", "--settings", "3",
            "--precision", "0.3", "--max-seconds", "0.4", "--no-store", "--json"});
  const ProcessResult result = ergotune(folder, words, 400);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto document = json_of(result);
  const double best = document["best"]["setting"];
  EXPECT_LT(best, 1980) << document.dump(1);
  const auto locked = [](fake_nvml::FakeNvml& one) {
    std::set<std::uint32_t> clocks;
    for (const auto& call : one.setter_calls())
      if (std::string(call.function) == "nvmlDeviceSetGpuLockedClocks") clocks.insert(call.a);
    return clocks;
  };
  EXPECT_THAT(locked(nvml), testing::Contains(static_cast<std::uint32_t>(best)));
  EXPECT_EQ(locked(nvml), locked(second)) << "the same settings on each";
  EXPECT_TRUE(is_restored());
  EXPECT_EQ(second.gpu().locked, 0);
  const auto& quantities = document["best"]["quantities"];
  const double one = fake_nvml::power_at(nvml.gpu(), 1, best, nvml.gpu().ambient) * (300 / best + 0.02);
  const double energy = quantities["energy"]["value"];
  EXPECT_GT(energy, 1.5 * one) << "of both GPUs, and their idle time";
  double nodes = 0;
  for (const char* node : {"a", "b"}) nodes += quantities[std::string("energy_of_node.") + node]["value"].get<double>();
  EXPECT_NEAR(nodes, energy, 1e-3 * energy) << quantities.dump(1);
  EXPECT_THAT(document["run_with"].get<std::string>(), HasSubstr("--node b"));
  EXPECT_TRUE(document["set_with"].empty()) << "commands for one machine";
}

// On a machine with one GPU, no meter of the processor and no right to set clocks, nothing was said of energy.
TEST_F(ProgramOnABoard, ItsEnergyIsReportedWhereClocksMayNotBeSet) {
  setenv("ERGOTUNE_FORBID_CONTROLS", "1", 1);
  const ProcessResult result = ergotune(
      folder,
      {"program", "--precision", "0.3", "--max-seconds", "0.4", "--no-store", "--json", "--", app(), "300", "0.02"},
      240);
  unsetenv("ERGOTUNE_FORBID_CONTROLS");
  const auto document = json_of(result);
  EXPECT_TRUE(document["control"].is_null());
  EXPECT_GT(document["measured"]["quantities"]["energy"]["value"].get<double>(), 0) << document.dump(1);
}

// Calls of the management library hold up a program's own calls of the driver: a program of 3 s took 6 % longer.
TEST_F(ProgramOnABoard, IsHardlyDisturbedByReadingItsEnergyAndItsClock) {
  for (const bool clocks : {false, true}) {
    folder.write("q.toml", fmt::format("name = \"q\"\nobjective = \"energy\"\n[parameters]\nX = "
                                       "[1]\n{}[program]\ncommand = [\"{}\", \"0\", \"1.5\", \"tell\"]\n"
                                       "output = {{ calls = 'calls: (\\d+)' }}\n",
                                       clocks ? "[execution]\ncore_clock_mhz = [1980]\n" : "", app()));
    std::vector<std::string> words =
        tune("q.toml", {"--sensor", "nvml:0", "--no-store", "--no-confirm", "--min-repeats", "2"});
    if (clocks) words.insert(words.end(), {"--control", "nvml:0"});
    const auto document = json_of(ergotune(folder, words, 240));
    const auto& quantities = document["top"][0]["quantities"];
    EXPECT_LE(quantities["calls"]["value"].get<double>(), clocks ? 80 : 8) << document;
    EXPECT_GT(quantities["energy"]["value"].get<double>(), 0);
    EXPECT_EQ(quantities["energy"]["sensor"], "nvml:0/energy");
  }
}

TEST_F(ProgramOnABoard, ClocksAreParametersOfAProblemFile) {
  folder.write("c.toml", fmt::format("name = \"c\"\nobjective = \"energy\"\n[parameters]\nWORK = [40, "
                                     "80]\n[execution]\ncore_clock_mhz = [990, 1980]\n"
                                     "[program]\ncommand = [\"{}\", \"{{{{WORK}}}}\", \"0\"]\ncheck = 'worked'\n",
                                     app()));
  const auto document = json_of(ergotune(
      folder, tune("c.toml", {"--control", "nvml:0", "--sensor", "nvml:0/samples", "--no-store", "--no-confirm"}),
      240));
  ASSERT_EQ(document["evaluated"], 4) << document;
  EXPECT_EQ(document["best"]["configuration"]["WORK"], 40);
  EXPECT_NEAR(document["best"]["quantities"]["core_clock"]["value"].get<double>() * 1e-6,
              document["best"]["configuration"]["core_clock_mhz"].get<double>(), 30);
  EXPECT_TRUE(is_restored());
}

// The session, its process group, and the session with all its children: clocks come back, and the program is gone.
TEST_F(ProgramOnABoard, HoweverItIsKilledSettingsComeBackAndNothingRuns) {
  const char* seed = std::getenv("ERGOTUNE_KILL_SEED");
  Random random(seed ? static_cast<std::uint64_t>(std::atoll(seed)) : 20261122);
  int changed = 0, ran = 0;
  for (int kill = 1; kill <= kills(); ++kill) {
    ChildProcess session = start_ergotune(folder, {"program", "--control", "nvml:0", "--sensor", "nvml:0/samples",
                                                   "--no-store", "--", app(), "200", "0.1"});
    std::this_thread::sleep_for(std::chrono::duration<double>(0.4 + 2.5 * random.uniform()));
    changed += nvml.gpu().locked != 0;
    ran += some_process_mentions(app());
    std::ifstream in(fmt::format("/proc/{0}/task/{0}/children", session.pid()));
    std::vector<pid_t> children;
    for (pid_t pid = 0; in >> pid;) children.push_back(pid);
    const int way = kill % 3;
    ::kill(way == 1 ? -session.pid() : session.pid(), SIGKILL);
    EXPECT_TRUE(session.wait(20));
    if (way == 2) {
      // the guardian and the supervisor too: what is left is for the next start
      for (const pid_t child : children) ::kill(child, SIGKILL);
      EXPECT_EQ(ergotune(folder, {"clocks", "restore"}).exit_code, 0) << "kill " << kill;
    }
    const double deadline = host_seconds() + 30;
    while (!is_restored() && host_seconds() < deadline) ::usleep(20'000);
    EXPECT_TRUE(is_restored()) << "the clock is still locked after kill " << kill << ", way " << way;
    EXPECT_TRUE(is_gone(app())) << "the program still runs after kill " << kill << ", way " << way;
  }
  std::fprintf(stderr, "%d kills, settings were changed at the moment of %d, the program ran at that of %d\n", kills(),
               changed, ran);
}

TEST_F(ProgramOnABoard, CtrlCEndsTheProgramAndPutsThingsBack) {
  ChildProcess session =
      start_ergotune(folder, {"program", "--control", "nvml:0", "--no-store", "--", app(), "100000", "60"});
  const auto runs = [&] {
    const auto started = descendants_of(session.pid());
    return std::ranges::any_of(started, [this](pid_t pid) {
      return read_file(fmt::format("/proc/{}/cmdline", pid)).value_or("").starts_with(app());
    });
  };
  for (const double deadline = host_seconds() + 60; !runs() && host_seconds() < deadline;) ::usleep(20'000);
  session.kill(SIGINT);
  const auto status = session.wait(20);
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 1) << *status;
  EXPECT_TRUE(is_gone(app(), 1));
  EXPECT_TRUE(is_restored());
}

TEST(ProgramVerb, WithoutAnythingToSetItMeasuresAndSaysWhatIsMissing) {
  TemporaryFolder folder;
  setenv("ERGOTUNE_FORBID_CONTROLS", "1", 1);
  const ProcessResult result =
      ergotune(folder, {"program", "--no-store", "--max-seconds", "0.2", "--json", "--", "sh", "-c", "echo -9 {{x}}"});
  const auto document = json_of(result);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(document["best"].is_null());
  EXPECT_GT(document["measured"]["quantities"]["time"]["value"].get<double>(), 0);
  EXPECT_THAT(document["why_not"].dump(), HasSubstr("ERGOTUNE_FORBID_CONTROLS"));
  EXPECT_EQ(ergotune(folder, {"program", "--no-store", "--", "false"}).exit_code, 1);
  EXPECT_EQ(ergotune(folder, {"program", "--no-store", "--", "no-such-program"}).exit_code, 2);
  EXPECT_EQ(ergotune(folder, {"program", "--max-slowdown", "5", "--", "true"}).exit_code, 2);
  EXPECT_EQ(ergotune(folder, {"program"}).exit_code, 2);
  unsetenv("ERGOTUNE_FORBID_CONTROLS");
}

}  // namespace
}  // namespace ergotune::test
