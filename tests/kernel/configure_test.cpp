// What a configuration means for a kernel: its compile job.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <tuple>

#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "error_of.hpp"
#include "kernel/configure.hpp"
#include "kernel/occupancy.hpp"
#include "problem/tables/device_profile.hpp"

namespace ergotune {
namespace {

/// A folder that is the working folder while the object lives.
class WorkingFolder {
 public:
  WorkingFolder() {
    std::filesystem::create_directories(folder / "sub");
    std::filesystem::current_path(folder);
  }
  ~WorkingFolder() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder);
  }
  const std::filesystem::path folder = std::filesystem::canonical(std::filesystem::temp_directory_path()) /
                                       ("ergotune-configure-" + std::to_string(::getpid()));

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
};

constexpr const char* kProblem = R"toml(
[parameters]
W = [2, 4]
[kernel]
function = "f"
source = "k.c"
arguments = [{ name = "x", type = "int32", count = 4, access = "write" }]
)toml";

CompileJob job_of(const Problem& problem) {
  DeviceInfo device;
  device.backend = "host";
  return make_compile_job(problem, problem.kernel(), device, {}, default_values(problem));
}

TEST(CompileJobs, CountInstructionsOfMachineCodeOnlyWhereTheyAreNamed) {
  const auto disassembles = [](const auto& change) {
    Problem problem;
    problem.kernel().sources.push_back({.language = Language::c, .text = "void f(void) {}"});
    problem.kernel().function = Template::parse("f");
    change(problem);
    return job_of(problem).disassemble;
  };
  EXPECT_FALSE(disassembles([](Problem&) {}));
  EXPECT_FALSE(disassembles([](Problem& p) { p.metrics.push_back({"m", Expression::parse("registers / time")}); }));
  EXPECT_TRUE(disassembles([](Problem& p) { p.metrics.push_back({"m", Expression::parse("static_fma / time")}); }));
  EXPECT_TRUE(disassembles(
      [](Problem& p) { p.restrictions.push_back({.expression = Expression::parse("static_spills == 0")}); }));
  EXPECT_TRUE(disassembles([](Problem& p) { p.objective.text = "time subject to static_spills <= 0"; }));
  EXPECT_TRUE(disassembles([](Problem& p) { p.plans.push_back({"p", {{.objective = "max static_fma"}}}); }));
}

// `ergotune tune p.toml` in its own folder is the commonest call; the compiler runs elsewhere.
TEST(CompileJobs, FindHeadersBesideTheSourceHoweverTheProblemIsNamed) {
  const WorkingFolder here;
  std::ofstream("p.toml") << kProblem;
  std::ofstream("k.c") << "#include \"x.h\"\nvoid f(int* x) { x[0] = SEVEN * W; }\n";
  std::ofstream("x.h") << "#define SEVEN 7\n";
  for (const std::filesystem::path& name : {std::filesystem::path("p.toml"), std::filesystem::path("./p.toml"),
                                            std::filesystem::path("sub/../p.toml"), here.folder / "p.toml"}) {
    const Problem problem = load_problem(name);
    EXPECT_EQ(problem.kernel().sources[0].file, here.folder / "k.c") << name;
    const CompileJob job = job_of(problem);
    EXPECT_THAT(job.include_folders, testing::ElementsAre(here.folder.string())) << name;
    std::filesystem::current_path("sub");
    EXPECT_FALSE(open_compiler("host")->compile(job).bytes.empty()) << name;
    std::filesystem::current_path(here.folder);
  }
}

TEST(CompileJobs, OfTextInTheFileIncludeFromTheFilesFolder) {
  const WorkingFolder here;
  const std::string text = R"toml(
[kernel]
function = "f"
source.c.text = '#include "x.h"'
include_folders = ["sub", "/opt/include", "./sub/"]
)toml";
  std::string with_parameters = "[parameters]\nW = [1]\n" + text;
  const CompileJob job = job_of(parse_problem(with_parameters, "p.toml"));
  EXPECT_THAT(job.include_folders,
              testing::ElementsAre(here.folder.string(), (here.folder / "sub").string(), "/opt/include"));
}

TEST(LaunchGeometries, NeedNumbers) {
  Launch launch;
  launch.block = {Expression::parse("bx")};
  const Value text("wide");
  EXPECT_EQ(error_of([&] { make_geometry(launch, [&](std::string_view) { return &text; }); }),
            "the block size bx is 'wide'; it must be a number");
}

TEST(LocalMemory, MayBeNoneAndNeverLess) {
  const Problem problem = parse_problem(
      "[parameters]\nW = [0, 3, -1]\n[kernel]\nfunction = \"f\"\nsource.c.text = ''\n"
      "arguments = [{ name = \"room\", type = \"int32\", local_count = \"W / 2\" }]\n",
      "p.toml");
  const auto bytes = [&](int w) {
    const Value value(w);
    return local_bytes(problem.kernel().arguments[0], [&](std::string_view) { return &value; });
  };
  EXPECT_EQ(bytes(0), 0u);
  EXPECT_EQ(bytes(2), 4u);
  EXPECT_THROW(bytes(3), UserError) << "one and a half";
  EXPECT_THROW(bytes(-2), UserError);
}

TEST(CompileJobs, CarryParametersAndConstantsAsMacros) {
  Problem problem = parse_problem(
      "[parameters]\nW = [2, 4]\nFAST = [true]\n[constants]\nN = 8\n[kernel]\nfunction = \"f<{{W}}>\"\n"
      "source.c.text = ''\noptions.c = [\"-DHALF={{W // 2}}\"]\n",
      "p.toml");
  DeviceInfo device;
  device.backend = "host";
  const CompileJob job = make_compile_job(problem, problem.kernel(), device,
                                          {{"N", Value(8)}, {"device.warp_size", Value(32)}}, {Value(4), Value(true)});
  EXPECT_THAT(job.defines,
              testing::ElementsAre(testing::Pair("W", "4"), testing::Pair("FAST", "1"), testing::Pair("N", "8")));
  EXPECT_THAT(job.options, testing::ElementsAre("-DHALF=2"));
  EXPECT_EQ(job.function, "f<4>");
}

TEST(CompileJobs, WriteBooleansAsTheLanguageHasThem) {
  for (const auto& [language, backend, word] :
       {std::tuple("cuda", "cuda", "true"), std::tuple("hip", "hip", "true"), std::tuple("cpp", "host", "true"),
        std::tuple("c", "host", "1"), std::tuple("opencl", "opencl", "1")}) {
    Problem problem = parse_problem(
        fmt::format("[parameters]\nS = [false, true]\n[kernel]\nfunction = \"f<{{{{S}}}}, {{{{not S or S}}}}>\"\n"
                    "source.{}.text = ''\nlaunch = {{ grid = 1, block = 1 }}\noptions.all = [\"-DX={{{{S}}}}\"]\n",
                    language),
        "p.toml");
    DeviceInfo device;
    device.backend = backend;
    const CompileJob job = make_compile_job(problem, problem.kernel(), device, {}, {Value(true)});
    EXPECT_THAT(job.options, testing::ElementsAre(fmt::format("-DX={}", word))) << language;
    EXPECT_EQ(job.function, fmt::format("f<{0}, {0}>", word)) << language;
  }
}

TEST(CompileJobs, SplitAParameterOfSeveralOptions) {
  Problem problem = parse_problem(
      "[parameters]\nOPTIMISE = [\"-O2\", \"-O3 -ffast-math\"]\nT = [\"int\", \"unsigned int\"]\n[kernel]\n"
      "function = \"f\"\nsource.c.text = ''\noptions.c = [\"{{OPTIMISE}}\", \"-DX={{T}}\", \"-DY=a b\"]\n",
      "p.toml");
  DeviceInfo device;
  device.backend = "host";
  const CompileJob job =
      make_compile_job(problem, problem.kernel(), device, {}, {Value("-O3 -ffast-math"), Value("unsigned int")});
  EXPECT_THAT(job.options, testing::ElementsAre("-O3", "-ffast-math", "-DX=unsigned int", "-DY=a b"));
}

TEST(Occupancy, IsTheSameInAnExpressionOnEveryProfile) {
  int compared = 0;
  for (const std::string& name : device_profile_names()) {
    const Constants properties = load_device_profile(name).properties;
    for (const int threads : {32, 64, 96, 256, 1024})
      for (const int registers : {0, 1, 37, 128, 255})
        for (const int shared : {0, 1, 2112, 5184, 40000}) {
          const auto quantity = occupancy_of({double(threads), double(registers), double(shared)}, properties);
          if (!quantity) continue;
          const std::string call = fmt::format("occupancy({}, {}, {})", threads, registers, shared);
          Value blocks;
          try {
            blocks = Expression::parse(call).evaluate([&](std::string_view wanted) -> const Value* {
              const auto found = properties.find(wanted);
              return found == properties.end() ? nullptr : &found->second;
            });
          } catch (const std::exception&) {
            continue;  // the profile lacks what an expression asks for
          }
          ++compared;
          EXPECT_EQ(blocks, Value(quantity->blocks)) << call << " on " << name;
        }
  }
  EXPECT_GT(compared, 1000);
}

TEST(Occupancy, RoundsSharedMemoryUpToTheDevicesUnit) {
  EXPECT_EQ(occupancy_of({64, 0, 2112}, load_device_profile("mi300x").properties)->blocks, 65536 / 2560);
  EXPECT_EQ(occupancy_of({32, 0, 5184}, load_device_profile("a100").properties)->blocks, 167936 / 5248);
}

// of the threads, the registers, and the shared memory that a block may have, which CUDA extends beyond 48 KiB
TEST(Occupancy, ABlockNeedsAShareOfWhatItMayHave) {
  Constants properties = load_device_profile("a100").properties;
  EXPECT_DOUBLE_EQ(occupancy_of({512, 16, 0}, properties)->need, 0.5);
  EXPECT_DOUBLE_EQ(occupancy_of({512, 256, 0}, properties)->need, 2);
  EXPECT_LT(occupancy_of({32, 16, 98304}, properties)->need, 1);
  properties.erase("device.shared_memory_per_block_optin");
  EXPECT_DOUBLE_EQ(occupancy_of({32, 16, 98304}, properties)->need, 2);
}

}  // namespace
}  // namespace ergotune
