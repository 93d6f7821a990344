// Sessions over several nodes, from outside: agents behind shells and behind a Slurm of two simulated nodes, which are
// killed, told to go, cut off, and come back. Every configuration is measured once, and none is lost. What they measure
// is simulated.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/npy.hpp"
#include "fakes/sysfs_trees/sysfs_trees.hpp"
#include "integration/support/command.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune {
namespace {

namespace fs = std::filesystem;
using test::ergotune;
using test::eventually;
using test::json_of;
using test::start_ergotune;
using test::stored_rows;
using test::TemporaryFolder;
using ::testing::HasSubstr;

constexpr int kConfigurations = 60;
/// 60 configurations and two values of what nobody looks at.
constexpr const char* kProblem = R"toml(
name = "fleet"
[parameters]
x = "range(1, 61)"
[simulation]
flops = 1e9
efficiency = "0.3 + 0.01 * x"
[kernel]
function = "f"
arguments = []
[kernel.source.c]
text = "void f(void) {}"
)toml";

/// Processes of a program with a word in their command line.
std::vector<pid_t> processes(const std::string& program, const std::string& word) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code gone;
    const fs::path exe = fs::read_symlink(entry.path() / "exe", gone);
    const std::string line = read_file(entry.path() / "cmdline").value_or("");
    if (!gone && exe.filename() == program && line.find(word) != std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

/// Agents that were started as --node NAME...: their session has that in its command line as well, but as one word.
std::vector<pid_t> agents_named(const std::string& name) {
  return processes("ergotune", std::string("--node\0", 7) + name);
}

struct Nodes : ::testing::Test {
  TemporaryFolder folder;
  fs::path store = folder.path() / "s.db";
  std::string tag = "node" + std::to_string(::getpid());

  Nodes() {
    folder.write("p.toml", kProblem);
    ::setenv("ERGOTUNE_SIMULATED_PACE", "0.04", 1);
  }
  ~Nodes() override {
    ::unsetenv("ERGOTUNE_SIMULATED_PACE");
    EXPECT_TRUE(eventually([&] { return agents_named(tag).empty(); }, 30)) << "an agent outlives its session";
  }
  std::string agent(int number) const { return "{} --node " + tag + "-" + std::to_string(number); }
  std::vector<std::string> command(const std::vector<std::string>& node_commands,
                                   const std::string& objective = "time") const {
    std::vector<std::string> arguments{"tune",        "p.toml",          "--device",       "sim:a100", "--strategy",
                                       "brute_force", "--objective",     objective,        "--store",  "s.db",
                                       "--json",      "--no-early-stop", "--node-silence", "3"};
    for (const std::string& one : node_commands) arguments.insert(arguments.end(), {"--node-command", one});
    return arguments;
  }
  std::size_t rows() const {
    try {
      return fs::exists(store) ? stored_rows(store).size() : 0;
    } catch (const std::exception&) {
      return 0;  // it is being made
    }
  }
  /// Each configuration once, and well.
  void expect_each_once() const {
    const auto all = stored_rows(store);
    EXPECT_EQ(all.size(), static_cast<std::size_t>(kConfigurations));
    for (const auto& [configuration, statuses] : all)
      EXPECT_THAT(statuses, ::testing::ElementsAre("ok")) << configuration;
    EXPECT_EQ(Store::open(store, true).sessions().front().provenance, Provenance::simulated)
        << "on the device that was named";
  }
  std::set<std::string> gpus() const {
    std::set<std::string> gpus;
    Store stored = Store::open(store, true);
    for (const StoredRow& row : stored.rows(stored.sessions().front().id)) gpus.insert(row.gpu);
    return gpus;
  }
  std::string message() const { return read_file(folder.path() / "err").value_or(""); }
};

TEST_F(Nodes, LoseAndDoubleNothingWhateverFailsInTheirPipes) {
  const std::string one = "process=agent --node " + tag + "-1", session = "process=p.toml";
  std::vector<std::string> all{"call=clock,nth=3,error=-7200," + one, "call=clock,nth=3,error=86400," + session,
                               "call=read,nth=1,error=0,stays", "call=write,nth=1,error=0,stays"};
  for (const int nth : {2, 5, 9, 30})
    for (const std::string& process : {one, session}) {
      all.push_back(fmt::format("call=read,nth={},error=5,path=socket,{}", nth, process));
      all.push_back(fmt::format("call=write,nth={},error=105,path=socket,{}", nth, process));
      all.push_back(fmt::format("call=pipe,nth={},error=24,{}", nth / 2, process));
      all.push_back(fmt::format("call=fork,nth={},error=11,{}", nth / 2, process));
    }
  ::setenv("ERGOTUNE_SIMULATED_PACE", "0.004", 1);
  int fired = 0, went_on = 0, refused = 0;
  for (const std::string& fault : test::chosen_faults(all, 6)) {
    {
      const test::Fault shim(folder, fault);
      const auto result = ergotune(folder, command({agent(1), agent(2)}), 60);
      fired += shim.fired();
      EXPECT_FALSE(result.timed_out) << fault << result.err;
      (result.exit_code == 0 ? went_on : refused) += 1;
      const auto said = result.err.find("ergotune: ");
      EXPECT_EQ(result.exit_code != 0, said != std::string::npos) << fault << result.err;
      EXPECT_TRUE(said == std::string::npos || result.err.find("\nergotune: ", said) == std::string::npos)
          << fault << result.err;
      if (fault.ends_with(one)) {
        EXPECT_EQ(result.exit_code, 0) << "the other node goes on: " << fault << result.err;
      }
    }
    json_of(ergotune(folder, command({agent(3)})));
    expect_each_once();
    fs::remove(store);
  }
  EXPECT_GT(fired, 3);
  std::printf("%d calls failed; %d commands went on, %d said why not\n", fired, went_on, refused);
}

TEST_F(Nodes, FindTheirDevicesThemselves) {
  // The session's own machine has no such device: the fake driver is the nodes' alone.
  const std::string driver = "ERGOTUNE_CUDA=" ERGOTUNE_BINARY_DIR "/tests/fakes/cuda/libcuda.so.1 ";
  folder.write(
      "c.toml",
      "name = \"c\"\n[kernel]\nsource = { cuda = \"c.cu\" }\nfunction = \"f\"\n[kernel.launch]\nglobal = [64]\n"
      "block = [64]\n[parameters]\nX = [1, 2]\n");
  folder.write("c.cu", "extern \"C\" __global__ void f() {}\n");
  const auto result = ergotune(
      folder, {"tune", "c.toml", "--device", "cuda:all", "--no-store", "--json", "--node-command", driver + agent(1)});
  EXPECT_THAT(result.err, Not(HasSubstr("there is no device"))) << "cuda:all is the node's";
}

TEST_F(Nodes, ShareASessionAndAShellThatGreetsDoesNoHarm) {
  const auto result = ergotune(folder, command({agent(1), "echo Welcome to the cluster; " + agent(2)}));
  const auto document = json_of(result);
  EXPECT_EQ(document.at("evaluated"), kConfigurations);
  EXPECT_EQ(document.at("devices").size(), 2u) << result.err;
  expect_each_once();
  EXPECT_EQ(gpus().size(), 2u);
  const auto again = json_of(ergotune(folder, command({agent(3)})));
  EXPECT_EQ(again.at("evaluated"), 0) << "another node knows the session";
  EXPECT_EQ(again.at("resumed"), kConfigurations);
}

TEST_F(Nodes, FillArgumentsWithNumpysFiles) {
  std::vector<float> numbers(64);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const auto array = [&](const char* name) {
    const std::string_view bytes(reinterpret_cast<const char*>(numbers.data()), 4 * numbers.size());
    folder.write(name, npy_header("<f4", numbers.size()) + std::string(bytes));
  };
  array("x.npy");
  for (float& number : numbers) number *= 2;
  array("y.npy");
  folder.write("n.toml", R"toml(
name = "n"
[parameters]
turn = [1, 2]
[kernel]
function = "f"
arguments = [
  { name = "x", type = "float32", count = 64, fill = { file = "x.npy" } },
  { name = "y", type = "float32", count = 64, access = "write" },
]
[kernel.source.c]
text = "void f(const float* x, float* y) { for (int i = 0; i < 64; ++i) y[i] = 2 * x[i]; }"
[verification.files]
y = "y.npy"
)toml");
  const auto result =
      ergotune(folder, {"tune", "n.toml", "--device", "host", "--store", "s.db", "--json", "--node-command", agent(1)});
  for (const auto& [configuration, statuses] : stored_rows(store))
    EXPECT_THAT(statuses, ::testing::ElementsAre("ok")) << configuration;
  EXPECT_EQ(stored_rows(store).size(), 2u) << result.err;
}

TEST_F(Nodes, AreListed) {
  const auto document =
      json_of(ergotune(folder, {"devices", "--json", "--node-command", agent(1), "--node-command", agent(2)}));
  ASSERT_EQ(document.at("nodes").size(), 2u);
  EXPECT_EQ(document.at("nodes").at(1).at("node"), tag + "-2");
  EXPECT_FALSE(document.at("nodes").at(0).at("devices").empty());
  const auto broken = ergotune(folder, {"devices", "--node-command", "exit 3"});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.err, HasSubstr("exit code 3"));
}

TEST_F(Nodes, ACommandThatStartsNothingIsTheEndAndSaysWhy) {
  const auto result = ergotune(folder, command({"echo cannot log in >&2; exit 255"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("cannot log in"));
}

TEST_F(Nodes, ControlCEndsTheWaitForTheFirstNode) {
  ChildProcess session = start_ergotune(folder, command({"kill -INT $PPID; exec sleep 300"}));
  const auto status = session.wait(60);
  ASSERT_TRUE(status && WIFEXITED(*status)) << message();
  EXPECT_EQ(WEXITSTATUS(*status), 1);
  EXPECT_THAT(message(), HasSubstr("interrupted before a node was ready"));
}

TEST_F(Nodes, ALoginThatNeverAnswersIsReportedAndGivenUp) {
  auto arguments = command({"exec sleep 300"});
  *std::next(std::ranges::find(arguments, "--node-silence")) = "0.2";
  const auto result = ergotune(folder, arguments);
  EXPECT_EQ(result.exit_code, 2) << "no node is left";
  EXPECT_THAT(result.err, HasSubstr("no answer for 0.2 s")) << "before it is given up";
}

/// A signal to one of two agents, and what the session says of it.
struct NodesSignalled : Nodes, ::testing::WithParamInterface<std::pair<int, const char*>> {};

INSTANTIATE_TEST_SUITE_P(By, NodesSignalled,
                         ::testing::Values(std::pair{SIGKILL, "its agent ended"}, std::pair{SIGSTOP, "sent nothing"},
                                           std::pair{SIGTERM, "SIGTERM"}));

TEST_P(NodesSignalled, AnAgentThatGoesOrIsSilentGivesItsWorkBack) {
  const auto& [signal, words] = GetParam();
  ChildProcess session = start_ergotune(folder, command({agent(1), agent(2)}));
  ASSERT_TRUE(eventually([&] { return rows() > 8; })) << message();
  for (const pid_t agent : agents_named(tag + "-1")) ::kill(agent, signal);
  EXPECT_EQ(session.wait(100), 0) << message();
  expect_each_once();
  EXPECT_THAT(message(), HasSubstr(words));
}

TEST_F(Nodes, AKilledSessionGoesOnWithOtherNodes) {
  {
    ChildProcess session = start_ergotune(folder, command({agent(1), agent(2)}));
    ASSERT_TRUE(eventually([&] { return rows() > 15; })) << message();
    session.kill(SIGKILL);
    session.wait();
  }
  EXPECT_TRUE(eventually([&] { return agents_named(tag).empty(); })) << "agents end with their session";
  const auto document = json_of(ergotune(folder, command({agent(3), agent(4), agent(5)})));
  EXPECT_GT(document.at("resumed"), 15);
  EXPECT_EQ(document.at("resumed").get<int>() + document.at("evaluated").get<int>(), kConfigurations);
  expect_each_once();
}

// ---- Slurm: munged, slurmctld and two slurmd of this test's own

bool installed(const char* program) {
  return ::system((std::string("PATH=$PATH:/usr/sbin:/sbin command -v ") + program + " >/dev/null 2>&1").c_str()) == 0;
}

struct Slurm : Nodes {
  fs::path place = folder.path();
  std::vector<ChildProcess> daemons;  // in the order of their start

  void SetUp() override {
    for (const char* program : {"munged", "slurmctld", "slurmd", "srun", "scontrol", "salloc"})
      if (!installed(program)) GTEST_SKIP() << program << " is not installed (packages slurm-wlm and munge)";
    if (::geteuid() != 0) GTEST_SKIP() << "daemons of Slurm are started as root";
    ::setenv("PATH", (std::string(::getenv("PATH")) + ":/usr/sbin:/sbin").c_str(), 1);
    ::setenv("SLURM_CONF", (place / "slurm.conf").c_str(), 1);
    write_configuration();
    start({"munged", "--foreground", "--force", "--socket=" + (place / "munge.socket").string(),
           "--key-file=" + (place / "munge.key").string(), "--pid-file=" + (place / "munge.pid").string(),
           "--log-file=" + (place / "munge.log").string(), "--seed-file=" + (place / "munge.seed").string()});
    ASSERT_TRUE(eventually([&] { return fs::exists(place / "munge.socket"); }, 30));
    start({"slurmctld", "-D", "-i"});
    start({"slurmd", "-D", "-N", "n1"});
    start({"slurmd", "-D", "-N", "n2"});
    ASSERT_TRUE(eventually(
        [&] {
          return output("sinfo -h -o %T").find("idle") != std::string::npos &&
                 output("sinfo -h -N -o %T").find("unk") == std::string::npos;
        },
        60))
        << output("sinfo") << read_file(place / "ctld.log").value_or("");
    const std::string allocated = output("salloc -N2 --no-shell -t 10 2>&1");
    const auto at = allocated.find("job allocation ");
    ASSERT_NE(at, std::string::npos) << allocated;
    ::setenv("SLURM_JOB_ID", std::to_string(std::stoi(allocated.substr(at + 15))).c_str(), 1);
    ::setenv("SLURM_JOB_NODELIST", "n[1-2]", 1);
  }
  void TearDown() override {
    if (const char* job = ::getenv("SLURM_JOB_ID")) output(std::string("scancel ") + job);
    for (auto daemon = daemons.rbegin(); daemon != daemons.rend(); ++daemon) {
      daemon->kill(SIGTERM);
      if (!daemon->wait(5)) daemon->kill(SIGKILL);
    }
    for (const pid_t step : processes("slurmstepd", "")) {
      const std::string environment = read_file("/proc/" + std::to_string(step) + "/environ").value_or("");
      if (environment.find(place.string()) != std::string::npos) ::kill(step, SIGKILL);
    }
    for (const char* name : {"SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_CONF"}) ::unsetenv(name);
  }
  static std::string output(const std::string& line) {
    return run_process({"timeout", "60", "/bin/sh", "-c", line}).out;
  }
  void start(const std::vector<std::string>& arguments) {
    std::vector<std::string> quiet{"/bin/sh", "-c", "exec \"$@\" >>\"$0\" 2>&1", (place / "daemons.log").string()};
    quiet.insert(quiet.end(), arguments.begin(), arguments.end());
    daemons.push_back(ChildProcess::start(quiet));
  }
  void write_configuration() {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    const int port = 20000 + ::getpid() % 20000;
    {
      std::ofstream key(place / "munge.key", std::ios::binary);
      for (int i = 0; i < 1024; ++i) key.put(static_cast<char>(std::rand()));
    }
    ::chmod((place / "munge.key").c_str(), 0400);
    std::ofstream conf(place / "slurm.conf");
    const std::string here = place.string(), name = host;
    conf << "ClusterName=test\nSlurmctldHost=" << name
         << "(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\nCredType=cred/munge\n"
         << "AuthInfo=socket=" << here << "/munge.socket\nStateSaveLocation=" << here
         << "/state\nSlurmdSpoolDir=" << here << "/spool-%n\n"
         << "SlurmctldPidFile=" << here << "/ctld.pid\nSlurmdPidFile=" << here
         << "/slurmd-%n.pid\nSlurmctldLogFile=" << here << "/ctld.log\nSlurmdLogFile=" << here
         << "/slurmd-%n.log\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
         << "JobAcctGatherType=jobacct_gather/none\nSelectType=select/"
            "cons_tres\nSelectTypeParameters=CR_Core\nSwitchType=switch/none\n"
         << "MpiDefault=none\nReturnToService=2\nSlurmdTimeout=30\nSlurmdParameters=config_overrides\nSlurmctldPort="
         << port << "\nSlurmdPort=" << port + 1 << "\n";
    for (int node = 1; node <= 2; ++node)
      conf << "NodeName=n" << node << " NodeHostname=" << name << " NodeAddr=127.0.0.1 Port=" << port + 1 + node
           << " CPUs=2 RealMemory=1000 State=UNKNOWN\n";
    conf << "PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP\n";
    fs::create_directories(place / "state");
    for (const char* node : {"n1", "n2"}) fs::create_directories(place / ("spool-" + std::string(node)));
  }
  std::vector<std::string> over_slurm() const {
    auto arguments = command({});
    arguments.insert(arguments.end(), {"--nodes", "slurm"});
    return arguments;
  }
  /// Agents, told apart by the node that Slurm says they are on.
  static std::vector<pid_t> agents_of(const std::string& node) {
    std::vector<pid_t> found;
    for (const pid_t pid : processes("ergotune", "agent"))
      if (read_file("/proc/" + std::to_string(pid) + "/environ").value_or("").find("SLURMD_NODENAME=" + node) !=
          std::string::npos)
        found.push_back(pid);
    return found;
  }
};

// One Slurm for all of it: it takes seconds to come up.
TEST_F(Slurm, ASessionOverTwoNodesThatAreKilledStoppedAndCutOff) {
  const auto whole = json_of(ergotune(folder, over_slurm()));
  EXPECT_EQ(whole.at("devices").size(), 2u);
  EXPECT_EQ(gpus().size(), 2u);
  expect_each_once();
  const auto listed = json_of(ergotune(folder, {"devices", "--json", "--nodes", "slurm"}));
  EXPECT_EQ(listed.at("nodes").at(0).at("node"), "n1");

  {  // the energy of a parallel job
    test::RaplTree tree;
    test::Writer writer{[&] {
      tree.energy("intel-rapl:0", 80 * host_seconds());
      ::usleep(1000);
    }};
    const ProcessResult result =
        ergotune(folder, {"energy", "--sensor", "rapl:package-0", "--nodes", "slurm", "-o", "e.json", "--", "srun",
                          "-N2", "-n2", "--overlap", "--mpi=none", "sleep", "2"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto energy = nlohmann::json::parse(read_file(folder.path() / "e.json").value());
    EXPECT_EQ(energy.at("nodes").at(0).at("node"), "n1");
    EXPECT_EQ(energy.at("nodes").at(1).at("node"), "n2");
    EXPECT_EQ(energy.at("slurm").at("JOB_ID"), ::getenv("SLURM_JOB_ID"));
    EXPECT_NEAR(energy.at("joules").get<double>() / energy.at("seconds").get<double>(), 160, 16) << energy;
  }

  struct Harm {
    const char* name;
    std::function<void()> done;
    const char* said;
  };
  const std::vector<Harm> harms{
      {"an agent killed",
       [] {
         for (const pid_t pid : agents_of("n1")) ::kill(pid, SIGKILL);
       },
       "n1"},
      {"a node that stops answering",
       [] {
         for (const pid_t pid : agents_of("n2")) ::kill(pid, SIGSTOP);
       },
       "sent nothing"},
      {"the pipe cut",
       [] {
         for (const pid_t pid : processes("srun", "n1")) ::kill(pid, SIGKILL);
       },
       "n1"},
      {"slurmd and its steps killed",
       [this] {
         daemons.back().kill(SIGKILL);
         for (const pid_t pid : agents_of("n2")) ::kill(pid, SIGKILL);
       },
       "n2"},
  };
  for (const Harm& harm : harms) {
    SCOPED_TRACE(harm.name);
    fs::remove(store);
    for (const char* more : {"s.db-wal", "s.db-shm"}) fs::remove(folder.path() / more);
    ChildProcess session = start_ergotune(folder, over_slurm());
    ASSERT_TRUE(eventually([&] { return rows() > 10; })) << message();
    harm.done();
    EXPECT_EQ(session.wait(100), 0) << message();
    expect_each_once();
    EXPECT_THAT(message(), HasSubstr(harm.said));
    for (const pid_t pid : agents_of("n2")) ::kill(pid, SIGCONT);
  }
}

}  // namespace
}  // namespace ergotune
