// The command on an AMD GPU, end to end: hiprtc's own code, a fake run time at the real boundary (tests/fakes/hip),
// and a gpu_metrics file that counts what the GPU draws.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/hip/hip_api.hpp"
#include "fakes/sysfs_trees/sysfs_trees.hpp"
#include "integration/support/command.hpp"
#include "patience.hpp"

namespace ergotune::test {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

/// A GPU with a card in a tree of sysfs, and a problem of the kernel that tests/fakes/hip/kernels.cpp runs.
struct HipCommand : ::testing::Test {
  SysfsTree tree;
  TemporaryFolder folder;
  std::map<std::string, std::string> environment;

  void SetUp() override {
    if (!hiprtc::api().usable()) GTEST_SKIP() << "no hiprtc: " << hiprtc::api().problem();
    const std::string card = "/sys/class/drm/card0/device";
    tree.put(card + "/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:1b:00.0\n");
    std::string table(120, '\xff');  // until the GPU writes it
    table.replace(0, 4, std::string("\x78\0\1\3", 4));
    table.replace(24, 8, std::string("\1\0\0\0\0\0\0\0", 8));
    tree.put(card + "/gpu_metrics", table);
    environment = {{"ERGOTUNE_HIP", ERGOTUNE_BINARY_DIR "/tests/fakes/hip/libamdhip64.so.5"},
                   {"FAKE_HIP_KERNELS", ERGOTUNE_BINARY_DIR "/tests/fakes/hip/kernels.so"},
                   {"FAKE_HIP_CARD", tree.real(card).string()},
                   {"ERGOTUNE_STATE_DIR", (folder.path() / "state").string()},
                   {"ERGOTUNE_DATA_DIR", (folder.path() / "data").string()},
                   {"ERGOTUNE_HELPER_SOCKET", "/nowhere"}};
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  }
  void TearDown() override {
    for (const auto& [name, value] : environment) unsetenv(name.c_str());
    unsetenv("FAKE_HIP_DEFECT");
  }
  /// `body` of the kernel in CUDA C++, and what its block may be.
  void write_problem(const std::string& blocks, const std::string& body = "if (i < n) y[i] = 2 * x[i];") const {
    folder.write("p.toml", fmt::format(R"(
name = "doubled"
objective = "energy"
[constants]
N = 1024
[parameters]
block = [{}]
[kernel]
function = "doubled"
arguments = [
  {{ name = "y", type = "float32", count = "N", access = "write" }},
  {{ name = "x", type = "float32", count = "N", fill = {{ random = [-1, 1], seed = 1 }} }},
  {{ name = "n", type = "int32", value = "N" }},
]
[kernel.source.cuda]
text = '''
extern "C" __global__ void doubled(float* y, const float* x, int n) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  {}
}}
'''
[kernel.launch]
global = ["N"]
block = ["block"]
[verification.host_function]
function = "reference"
[verification.host_function.source.c]
text = '''
void reference(float* y, const float* x, int n) {{ for (int i = 0; i < n; ++i) y[i] = 2 * x[i]; }}
'''
)",
                                       blocks, body));
  }
  Json tune(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"tune",         "p.toml", "--device",    "hip:0",
                                          "--no-confirm", "--json", "--precision", "0.05"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json_of(ergotune(folder, arguments, 120));
  }
};

using QuietHipCommand = HipCommand;

TEST_F(QuietHipCommand, TunesEnergyAndGoesOnAfterEveryKindOfFault) {
  write_problem("64, 128, 256, 512, 1024");
  with_patience("energies of launches that the scheduler held up are not known well enough", [&] {
    std::filesystem::remove(folder.path() / "p.db");
    const Json found = tune({"--store", "p.db"});
    EXPECT_EQ(found["best"]["configuration"]["block"], 256)
        << found.dump(1) << "\nit takes longer, at a sixth of the power";
  });
  const auto rows = stored_rows(folder.path() / "p.db");
  const auto status_of = [&](const std::string& block) {
    for (const auto& [configuration, statuses] : rows)
      if (configuration.find(block) != std::string::npos) return statuses.at(0);
    return std::string("none");
  };
  EXPECT_EQ(status_of("1024"), "runtime_error") << "it ended its process";
  EXPECT_EQ(status_of("512"), "runtime_error") << "an illegal address";
  EXPECT_EQ(status_of("64"), "wrong_result") << "it forgets its last number";
  EXPECT_THAT(status_of("128"), ::testing::AnyOf("ok", "not_converged"));
}

/// The fake GPU's energy goes by the clock.
struct QuietHipEnergy : HipCommand {};

TEST_F(QuietHipEnergy, IsWhatTheGpuCountedAndResourcesWhatTheCodeSays) {
  write_problem("128");
  const Json best = tune()["best"];
  const Json& quantities = best["quantities"];
  const double time = quantities["time"]["value"], energy = quantities["energy"]["value"];
  EXPECT_GE(time, 2e-3) << best.dump(1);
  // 600 W while it runs, and 90 W while the scheduler keeps it from running
  EXPECT_THAT(energy / time, ::testing::AllOf(::testing::Gt(300), ::testing::Lt(700))) << best.dump(1);
  EXPECT_EQ(quantities["energy"]["provenance"], "measured");
  EXPECT_THAT(quantities["energy"].dump(), HasSubstr("amdgpu:card0/energy"));
  EXPECT_GT(quantities["registers"]["value"], 0);
  EXPECT_EQ(quantities["spilled_registers"]["value"], 0);
}

TEST_F(HipCommand, ACounterThatStandsStillOrReadsZeroIsNoEnergyAndNeverZeroJoule) {
  write_problem("128");
  for (const char* defect : {"still", "zero"}) {
    setenv("FAKE_HIP_DEFECT", defect, 1);
    const ProcessResult run = ergotune(folder,
                                       {"tune", "p.toml", "--device", "hip:0", "--no-confirm", "--json", "--precision",
                                        "0.05", "--store", fmt::format("{}.db", defect)},
                                       120);
    EXPECT_NE(run.exit_code, 0) << defect << run.out;
    // a counter that reads 0 before the session begins is refused before there is a store
    const auto store = folder.path() / fmt::format("{}.db", defect);
    if (std::filesystem::exists(store)) {
      // its time is measured first, its energy cannot be
      for (const auto& [configuration, statuses] : stored_rows(store))
        EXPECT_EQ(statuses.back(), "unsupported") << defect << configuration;
    }
    EXPECT_THAT(run.out + run.err, HasSubstr("amdgpu")) << defect;
    // its time can be had all the same
    const Json timed = json_of(ergotune(folder,
                                        {"measure", "p.toml", "--device", "hip:0", "--objective", "time", "--json",
                                         "--precision", "100%", "--config", "{\"block\": 128}"},
                                        120));
    EXPECT_THAT(timed.dump(), HasSubstr("\"time\":{")) << timed.dump(1);
    EXPECT_THAT(timed.dump(), ::testing::Not(HasSubstr("\"energy\":{"))) << timed.dump(1);
  }
}

TEST_F(HipCommand, CompileErrorsHaveTheCompilersWordsAndPlaceAndTuningGoesOn) {
  write_problem("128, 256",
                "\n#if block == 256\n  y[i] = undeclared_name;\n#else\n  if (i < n) y[i] = 2 * x[i];\n#endif\n");
  const Json found = tune({"--store", "p.db"});
  EXPECT_EQ(found["best"]["configuration"]["block"], 128) << found.dump(1);
  const ProcessResult shown = ergotune(folder, {"show", "p.db", "--failures"}, 60);
  EXPECT_THAT(shown.out, HasSubstr("undeclared_name"));
  EXPECT_THAT(shown.out, HasSubstr("compile_error"));
}

TEST_F(HipCommand, CountersSayThatTheyAreNotReadOfAmd) {
  write_problem("128");
  for (const auto& arguments :
       {std::vector<std::string>{"counters", "check", "--device", "hip:0"},
        {"measure", "p.toml", "--device", "hip:0", "--config", "{\"block\": 128}", "--observe", "counters"}}) {
    const ProcessResult run = ergotune(folder, arguments, 60);
    EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
    EXPECT_THAT(run.err, HasSubstr("rocprofiler-sdk")) << arguments[0];
  }
}

TEST_F(HipCommand, DevicesShowsTheGpuWithItsSensor) {
  const ProcessResult result = ergotune(folder, {"devices"}, 60);
  EXPECT_THAT(result.out, HasSubstr("hip:0"));
  EXPECT_THAT(result.out, HasSubstr("AMD Instinct MI250X"));
  EXPECT_THAT(result.out, HasSubstr("amdgpu:card0/energy"));
}

}  // namespace
}  // namespace ergotune::test
