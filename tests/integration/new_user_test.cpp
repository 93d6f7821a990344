// What went wrong for a demanding new user, tried with the command from outside (docs/measurements/new-user-*.md).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.hpp"
#include "device/cuda/nvrtc_api.hpp"
#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A host problem whose kernel says `body`.
std::string host_problem(const std::string& body, const std::string& more = "") {
  return R"toml(
name = "tried"
[parameters]
turn = [1, 2, 3]
)toml" + more +
         R"toml(
[kernel]
function = "work"
arguments = [
  { name = "n", type = "int32", value = 100 },
  { name = "a", type = "float32", count = 100 },
  { name = "b", type = "float32", count = 100, access = "write" },
]
[kernel.source.c]
text = '''
)toml" + body +
         "\n'''\n";
}

const std::string kCopies =
    "static volatile int sink;\n"
    "void work(int n, const float* a, float* b) {\n"
    "  for (int i = 0; i < n; ++i) b[i] = a[i];\n"
    "  for (int i = 0; i < 3000 * turn; ++i) sink = i;\n}\n";

// Before anything is compiled: the budget is not spent on what cannot be told.
TEST(NewUser, WhatNobodySaysIsNoObjective) {
  TemporaryFolder folder;
  folder.write("p.toml", host_problem(kCopies, "[metrics]\nrate = \"1 / time\"\n"));
  for (const auto& [objective, words] : {std::pair<std::string, std::string>{"gflops", "\"gflops\""},
                                         {"max", "\"max\""},
                                         {"time subject to watts <= 3", "\"watts\""},
                                         {"pareto(time, gflops)", "\"gflops\""},
                                         {"time subject to rate >= 0.9 * best(flops)", "\"flops\""},
                                         {"host_time", "observer"}}) {
    const auto result = ergotune(folder, {"tune", "p.toml", "--device", "host", "--objective", objective});
    EXPECT_EQ(result.exit_code, 2) << objective;
    EXPECT_THAT(result.err, HasSubstr(words));
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "ergotune.db")) << objective;
  }
  folder.write("m.toml", host_problem(kCopies, "[metrics]\nspeed = \"flops / time\"\nrate = \"2 * speed\"\n"));
  const auto result = ergotune(folder, {"tune", "m.toml", "--device", "host", "--objective", "max rate"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("metric \"speed\""));
  EXPECT_EQ(
      ergotune(folder, {"tune", "p.toml", "--device", "host", "--objective", "max rate", "--no-store", "-q"}).exit_code,
      0);
}

TEST(NewUser, WhatFailedIsReportedByTheLineThatSaysWhy) {
  TemporaryFolder folder;
  folder.write("p.toml",
               host_problem("void work(int n, const float* a, float* b) {\n  b[0] = nonesuch;\n  b[1] = a[n];\n}\n"));
  const auto kept = ergotune(folder, {"tune", "p.toml", "--device", "host", "-q"});
  EXPECT_THAT(kept.out, AllOf(HasSubstr("  compile_error: kernel:2:10: error: "),
                              HasSubstr("ergotune show ergotune.db --session 1 --failures")));
  const auto lost = ergotune(folder, {"tune", "p.toml", "--device", "host", "-q", "--no-store"});
  EXPECT_THAT(lost.out, AllOf(HasSubstr("  compile_error: kernel:2:10: error: "), HasSubstr("\n  | kernel:")))
      << "nothing keeps the rest of the words";
  folder.write("some.toml", host_problem("#if turn == 1\n#error no such luck\n#endif\n" + kCopies));
  const auto some = ergotune(folder, {"tune", "some.toml", "--device", "host", "-q", "--store", "some.db"});
  EXPECT_EQ(some.exit_code, 0);
  EXPECT_THAT(some.out, AllOf(HasSubstr("no such luck"), HasSubstr("some.db --session 1 --failures")))
      << "also where others worked";
  const auto shown = ergotune(folder, {"show", "--failures"});
  EXPECT_THAT(shown.out, HasSubstr("3 x compile_error"));
  EXPECT_EQ(ergotune(folder, {"report"}).exit_code, 0);
  EXPECT_THAT(text_of(folder.path() / "report.html"), HasSubstr("nonesuch"));
}

TEST(NewUser, MistakesOfTheCommandLineAreReported) {
  TemporaryFolder folder;
  folder.write("p.toml", host_problem(kCopies));
  const auto says = [&](const std::vector<std::string>& arguments, const std::string& words) {
    const auto result = ergotune(folder, arguments);
    EXPECT_EQ(result.exit_code, 2) << words;
    EXPECT_THAT(result.err, HasSubstr(words));
  };
  says({"tun", "p.toml"}, "there is no verb \"tun\" (did you mean \"tune\"?)");
  says({"tune", "p.toml", "--top", "-1"}, "--top");
  says({"space", "p.toml", "--sample", "-3"}, "--sample: must not be negative");
  says({"space", "p.toml", "--seed", "-3"}, "--seed: must not be negative");
  says({"tune", "p.toml", "--figure", "x.svg"}, "--figure draws a comparison of plans");
  says({"tune", "p.toml", "--device", "host", "--plan", "foo"}, "foo");
  EXPECT_THAT(ergotune(folder, {"tune", "p.toml", "--device", "host", "--plan", "foo"}).err, Not(HasSubstr("sensor")));
  EXPECT_EQ(ergotune(folder, {"help", "tune"}).out, ergotune(folder, {"tune", "--help"}).out);
  EXPECT_EQ(ergotune(folder, {"help"}).out, ergotune(folder, {"--help"}).out);
  EXPECT_EQ(ergotune(folder, {"analyze", "--help"}).out, ergotune(folder, {"analyse", "--help"}).out);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "ergotune.db"));
}

TEST(NewUser, AKernelAsItIsBecomesAProblemThatTunes) {
  TemporaryFolder folder;
  folder.write("add.cl",
               "__kernel void add(__global float* c, __global const float* a, __global const float* b, int n) {\n"
               "  for (int p = 0; p < PER_ITEM; ++p) {\n"
               "    int i = get_global_id(0) + p * get_global_size(0);\n    if (i < n) c[i] = a[i] + b[i];\n  }\n}\n");
  ASSERT_EQ(ergotune(folder, {"init", "add.cl"}).exit_code, 0);
  const auto tuned = ergotune(folder, {"tune", "add.toml", "--device", "opencl", "--budget", "3", "-q", "--json"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_TRUE(json_of(tuned)["best"]["configuration"].contains("PER_ITEM"));
  const auto again = ergotune(folder, {"init", "add.cl"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("--force"));
  EXPECT_EQ(ergotune(folder, {"init", "absent.cl"}).exit_code, 2);
}

TEST(NewUser, GuessesThatAreStillMarkedAreNotedWhenTuning) {
  TemporaryFolder folder;
  folder.write("fill.c", "void fill(float* y, int n) {\n  for (int i = 0; i < n; ++i) y[i] = 1;\n}\n");
  ASSERT_EQ(ergotune(folder, {"init", "fill.c"}).exit_code, 0);
  const std::vector<std::string> tune{"tune", "fill.toml", "--device", "host", "--budget", "2", "--no-store", "--json"};
  const auto noted = [&](const auto& result, const std::string& text) {
    const auto notes = json_of(result).at("notes");
    return std::ranges::any_of(
        notes, [&](const auto& note) { return note.template get<std::string>().find(text) != std::string::npos; });
  };
  std::string text = *read_file(folder.path() / "fill.toml");
  const std::size_t mark = text.find("# CHECK: ");
  ASSERT_NE(mark, std::string::npos) << text;
  const auto line =
      std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(mark), '\n'));
  const auto marked = ergotune(folder, tune);
  EXPECT_THAT(marked.err, AllOf(HasSubstr("fill.toml"), HasSubstr("CHECK"), HasSubstr(line)));
  EXPECT_TRUE(noted(marked, "CHECK"));
  for (std::size_t at = 0; (at = text.find("# CHECK: ")) != std::string::npos;)
    text.erase(at, text.find('\n', at) - at);
  folder.write("fill.toml", text);
  EXPECT_FALSE(noted(ergotune(folder, tune), "CHECK")) << "the head of the file explains the marks and is none";
}

TEST(NewUser, TheNextCommandOfInitWorksHere) {
  TemporaryFolder folder;
  folder.write("add.cu",
               "__global__ void add(float* c, const float* a, int n) {\n"
               "  int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n) c[i] += a[i];\n}\n");
  const auto written = ergotune(folder, {"init", "add.cu"});
  const std::size_t next = written.out.find("Next: ergotune ");
  ASSERT_NE(next, std::string::npos) << written.out;
  std::istringstream words(written.out.substr(next + 15));
  const auto result = ergotune(folder, {std::istream_iterator<std::string>(words), {}});
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
}

TEST(NewUser, AReferenceThatNothingAgreesWithIsNamed) {
  TemporaryFolder folder;
  folder.write("p.toml", host_problem(kCopies) +
                             "[verification.host_function]\nfunction = \"expected_copy\"\nsource = { c = { text = "
                             "\"void expected_copy(int n, const float* a, float* b) { b[0] = a[0] + 1; }\" } }\n");
  const auto result = ergotune(folder, {"tune", "p.toml", "--device", "host", "--no-store"});
  EXPECT_THAT(result.out, AllOf(HasSubstr("wrong_result"), HasSubstr("expected_copy")));
}

TEST(NewUser, ADeviceThatIsNotHereHasOneNameForTuneAndSpace) {
  TemporaryFolder folder;
  folder.write("p.toml", host_problem(kCopies));
  const auto space = ergotune(folder, {"space", "p.toml", "--device", "sim:h100", "--json"});
  ASSERT_EQ(space.exit_code, 0) << space.err;
  EXPECT_EQ(json_of(space)["device"],
            json_of(ergotune(folder, {"space", "p.toml", "--profile", "h100", "--json"}))["device"]);
  EXPECT_EQ(ergotune(folder, {"space", "p.toml", "--device", "sim:nosuch"}).exit_code, 2);
}

// A first draft that cannot be tuned yet does not propose to tune it; one that is no problem file is not written.
TEST(NewUser, AFirstProblemFileProposesWhatCanBeDone) {
  TemporaryFolder folder;
  const std::string kernel =
      "__kernel void f(__global float* x, int n) { int i = get_group_id(0) * 32 + get_local_id(0);\n"
      "  if (i < n) x[i] *= W; }\n";
  folder.write("fixed.cl", "#define W 3\n" + kernel);
  folder.write("open.cl", "#ifndef W\n#define W 3\n#endif\n" + kernel);
  folder.write("quoted\".cl", kernel);
  folder.write("header.cl", "#include \"weight.h\"\n" + kernel);
  std::filesystem::create_directory(folder.path() / "inc");
  folder.write("inc/weight.h", "#define W 3\n");
  EXPECT_THAT(ergotune(folder, {"init", "header.cl", "-o", "-"}).err, HasSubstr("weight.h"));
  EXPECT_THAT(ergotune(folder, {"init", "-I", "inc", "header.cl", "-o", "-"}).out,
              HasSubstr("include_folders = [\"inc\"]"));
  EXPECT_EQ(ergotune(folder, {"init", "fixed.cl"}).out.find("ergotune tune"), std::string::npos);
  EXPECT_NE(ergotune(folder, {"init", "open.cl"}).out.find("ergotune tune"), std::string::npos);
  const ProcessResult invalid = ergotune(folder, {"init", "quoted\".cl", "-o", "q.toml"});
  EXPECT_EQ(invalid.exit_code, 1) << "a defect of init, not of its user";
  EXPECT_NE(invalid.err.find("[kernel]"), std::string::npos) << "the draft: " << invalid.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "q.toml"));
}

TEST(NewUser, AProgramWithoutAKernelIsReferredToPrograms) {
  TemporaryFolder folder;
  folder.write("app.cpp", "int main() { return 0; }\n");
  folder.write("job.sh", "#!/bin/sh\nsrun ./app\n");
  for (const char* file : {"app.cpp", "job.sh"}) {
    const ProcessResult refused = ergotune(folder, {"init", file});
    EXPECT_EQ(refused.exit_code, 2) << file;
    EXPECT_THAT(refused.err, HasSubstr("[program]")) << file;
  }
}

TEST(NewUser, VariablesThatNothingFillsAreNoted) {
  if (!nvrtc::api().usable()) GTEST_SKIP() << "no NVRTC: " << nvrtc::api().problem();
  TemporaryFolder folder;
  folder.write("k.cu", "__constant__ float unset[2];\n__global__ void f(float* x) { x[0] = unset[1]; }\n");
  folder.write("k.toml",
               "[kernel]\nsource = \"k.cu\"\nfunction = \"f\"\narguments = [{ name = \"x\", type = \"float32\", count "
               "= 1, access = \"write\" }]\n[kernel.launch]\ngrid = [1]\nblock = [1]\n[parameters]\nA = [1]\n");
  const ProcessResult result = ergotune(folder, {"space", "k.toml", "--compile", "1", "--profile", "h100", "--json"});
  const auto notes = json_of(result).at("notes");
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].get<std::string>().find("k.cu:1: "), std::string::npos) << notes;
  EXPECT_NE(result.err.find(notes[0].get<std::string>()), std::string::npos) << "as text, too: " << result.err;
}

TEST(NewUser, BlocksThatTheDeviceDoesNotHaveAreCounted) {
  if (!nvrtc::api().usable()) GTEST_SKIP() << "no NVRTC: " << nvrtc::api().problem();
  TemporaryFolder folder;
  folder.write("k.cu", "extern __shared__ float tile[];\n__global__ void f(float* x) { x[0] = tile[BYTES]; }\n");
  folder.write("k.toml",
               "[kernel]\nsource = \"k.cu\"\nfunction = \"f\"\narguments = [{ name = \"x\", type = \"float32\", count "
               "= 1, access = \"write\" }]\n[kernel.launch]\ngrid = [1, \"ROWS\"]\nblock = [32]\nshared_memory_bytes = "
               "\"BYTES\"\n[parameters]\nBYTES = [49152, 65536, 140000]\nROWS = [65535, 65536]\n");
  const auto compiled = json_of(
      ergotune(folder, {"space", "k.toml", "--compile", "all", "--profile", "rtx_a4000", "--json"}))["compiled"];
  ASSERT_EQ(compiled.size(), 6u);
  for (const auto& one : compiled)
    EXPECT_EQ(one["fits"], one["configuration"]["BYTES"] < 100000 && one["configuration"]["ROWS"] < 65536) << one;
}

TEST(NewUser, BlocksBeyondTheLaunchBoundAreCounted) {
  if (!nvrtc::api().usable()) GTEST_SKIP() << "no NVRTC: " << nvrtc::api().problem();
  TemporaryFolder folder;
  for (const char* bound : {"192", "kThreads, 2", "MOST", "OWN"}) {
    folder.write("k.cu", fmt::format("#ifndef BLOCK\n#define BLOCK 32\n#endif\n#define OWN (BLOCK * 1)\nconstexpr int "
                                     "kThreads = 192;\nnamespace n {{ template <int T> __global__ void "
                                     "__launch_bounds__({}) f(float* x) {{ x[0] = kThreads; }} }}\n",
                                     bound));
    folder.write("k.toml",
                 "[kernel]\nsource = \"k.cu\"\nfunction = \"n::f<4>\"\narguments = [{ name = \"x\", type = "
                 "\"float32\", count = 1, access = \"write\" }]\n[kernel.launch]\ngrid = [1]\nblock = "
                 "[\"BLOCK\"]\n[parameters]\nBLOCK = [64, 192, 193]\nMOST = [192]\n");
    const auto compiled =
        json_of(ergotune(folder, {"space", "k.toml", "--compile", "all", "--profile", "h100", "--json"}))["compiled"];
    ASSERT_EQ(compiled.size(), 3u);
    for (const auto& one : compiled)
      EXPECT_EQ(one["fits"], bound == std::string("OWN") || one["configuration"]["BLOCK"] <= 192) << bound << one;
  }
}

// Of arguments of one type in another order nothing shows but that what is written is const.
TEST(NewUser, AConstArgumentThatIsToBeWrittenIsAMistake) {
  TemporaryFolder folder;
  folder.write("k.cl", "kernel void f(global const float* a, global float* b) { b[0] = a[0]; }\n");
  folder.write("k.cu", "extern \"C\" __global__ void f(const float* a, float* b) { b[0] = a[0]; }\n");
  folder.write("t.cu", "template <int N> __global__ void f(const float* a, float* b) { b[0] = a[0]; }\n");
  for (const std::string source : {"k.cl", "k.cu", "t.cu"}) {
    const bool cuda = source.ends_with(".cu");
    if (cuda && !nvrtc::api().usable()) continue;
    for (const bool good : {true, false}) {
      folder.write("k.toml", fmt::format("[kernel]\nsource = \"{}\"\nfunction = \"{}\"\n"
                                         "arguments = [{{ name = \"{}\", type = \"float32\", count = 64{} }}, "
                                         "{{ name = \"{}\", type = \"float32\", count = 64{} }}]\n"
                                         "[kernel.launch]\nglobal = [64]\nblock = [64]\n[parameters]\nA = [1]\n",
                                         source, source == "t.cu" ? "f<1>" : "f", good ? "a" : "b",
                                         good ? "" : ", access = \"write\"", good ? "b" : "a",
                                         good ? ", access = \"write\"" : ""));
      std::vector<std::string> words{"space", "k.toml", "--compile", "1", "--json"};
      if (cuda) words.insert(words.end(), {"--profile", "h100"});
      const auto compiled = ergotune(folder, words);
      EXPECT_EQ(compiled.exit_code, good ? 0 : 2) << source << compiled.out << compiled.err;
    }
  }
}

TEST(NewUser, HostCodeThatRunTimeCompilationRefusesHasARemedy) {
  if (!nvrtc::api().usable()) GTEST_SKIP() << "no NVRTC: " << nvrtc::api().problem();
  TemporaryFolder folder;
  folder.write("k.toml",
               "[kernel]\nsource = \"k.cu\"\nfunction = \"f\"\narguments = [{ name = \"x\", type = \"float32\", "
               "count = 1, access = \"write\" }]\n[kernel.launch]\ngrid = [1]\nblock = [1]\n[parameters]\nA = [1]\n");
  folder.write("helper.h", "inline int threads() { return 256; }\n");
  const std::map<std::string, std::string> remedies{{"#include <vector>\nint main() { f<<<1, 1>>>(nullptr); }\n", ""},
                                                    {"#include \"own.h\"\n", "include_folders"},
                                                    {"#include \"helper.h\"\n", ""}};
  for (const auto& [host, remedy] : remedies) {
    folder.write("k.cu", "__global__ void f(float* x) { x[0] = 1; }\n" + host);
    const auto compiled =
        json_of(ergotune(folder, {"space", "k.toml", "--compile", "1", "--profile", "h100", "--json"}))["compiled"][0];
    EXPECT_EQ(compiled["compiles"] == true, remedy.empty()) << host << compiled;
    EXPECT_THAT(compiled.value("message", ""), HasSubstr(remedy));
  }
  folder.write("k.cu", "__global__ void f(float* out) { out[0] = 1; }\n");
  folder.write("k.toml",
               "[kernel]\nsource = \"k.cu\"\nfunction = \"f\"\narguments = [{ name = \"x\", type = \"float32\", "
               "count = 1, access = \"write\" }]\n[kernel.launch]\ngrid = [1]\nblock = [1]\n[parameters]\nx = [1]\n");
  const auto compiled = json_of(ergotune(folder, {"space", "k.toml", "--compile", "1", "--profile", "h100", "--json"}));
  EXPECT_THAT(compiled["compiled"][0]["message"], HasSubstr("are macros")) << "x is a member of dim3";
}

TEST(NewUser, ConfigurationsAreCompiledWithoutBeingRun) {
  TemporaryFolder folder;
  folder.write("k.cl", "__kernel void scale(__global REAL* x) { x[0] *= 2; }\n");
  folder.write("k.cu", "extern \"C\" __global__ void scale(REAL* x) { x[0] *= 2; }\n");
  for (const std::string language : {"cl", "cu"}) {
    for (const bool good : {true, false}) {
      folder.write("k.toml", fmt::format("[kernel]\nsource = \"k.{}\"\nfunction = \"scale\"\n[kernel.launch]\n"
                                         "global = [64]\nblock = [64]\n[[kernel.arguments]]\nname = \"x\"\n"
                                         "type = \"float32\"\ncount = 64\n[parameters]\nREAL = [\"{}\", \"nosuch\"]\n",
                                         language, good ? "float" : "absent"));
      std::vector<std::string> words{"space", "k.toml", "--compile", "2", "--json"};
      if (language == "cu") words.insert(words.end(), {"--profile", "h100"});
      if (language == "cu" && !nvrtc::api().usable()) GTEST_SKIP() << "no NVRTC: " << nvrtc::api().problem();
      const ProcessResult result = ergotune(folder, words);
      EXPECT_EQ(result.exit_code, good ? 0 : 1) << result.err;
      const auto compiled = nlohmann::json::parse(result.out).at("compiled");
      ASSERT_EQ(compiled.size(), 2u);
      for (const auto& one : compiled) {
        EXPECT_EQ(one.at("compiles"), one.at("configuration").at("REAL") == "float") << one;
        EXPECT_EQ(one.at("message").get<std::string>().empty(), one.at("compiles").get<bool>());
      }
    }
  }
  EXPECT_EQ(ergotune(folder, {"space", "k.toml", "--compile", "2", "--profile", "mi300x"}).exit_code, 2);
}

/// An OpenCL problem whose argument y has this type.
std::string opencl_problem(const std::string& y, const std::string& more = "") {
  return "[kernel]\nsource = \"k.cl\"\nfunction = \"copy\"\n[kernel.launch]\nglobal = [64]\nblock = [\"BLOCK\"]\n"
         "[[kernel.arguments]]\nname = \"x\"\ntype = \"float32\"\ncount = 64\n" +
         (y.empty() ? ""
                    : "[[kernel.arguments]]\nname = \"y\"\ntype = \"" + y + "\"\ncount = 64\naccess = \"write\"\n") +
         "[parameters]\nBLOCK = [16, 32, 64]\n" + more;
}

TEST(NewUser, TheReferenceOnTheHostIsCompiledForTheHost) {
  TemporaryFolder folder;
  folder.write("k.cl", "__kernel void copy(__global const float* x, __global float* y) { y[BLOCK] = x[0]; }\n");
  const auto compiled = [&](const std::string& body) {
    folder.write("k.toml", opencl_problem("float32",
                                          "[verification.host_function]\nfunction = \"expected\"\n"
                                          "source = { c = { text = \"void expected(const float* x, float* y) { " +
                                              body + " }\" } }\n"));
    return ergotune(folder, {"space", "k.toml", "--compile", "all", "--json"});
  };
  const auto all = json_of(compiled("y[0] = x[0];"))["compiled"];
  EXPECT_EQ(std::ranges::count_if(all, [](const auto& one) { return one["compiles"] == true; }), 3);
  const ProcessResult refused = compiled("y[0] = absent;");
  EXPECT_EQ(refused.exit_code, 2) << refused.out << "as tune, and no configuration is to blame";
  EXPECT_THAT(refused.err, HasSubstr("\"expected\""));
}

TEST(NewUser, OutputsThatDifferEverywhereNameTheKernelAndItsGrid) {
  if (!has_opencl()) GTEST_SKIP() << "no OpenCL device";
  TemporaryFolder folder;
  folder.write(
      "k.cl",
      "__kernel void copy(__global const float* x, __global float* y) { int i = get_global_id(0); if (i < BLOCK) "
      "y[i] = x[i]; }\n");
  folder.write("k.toml",
               opencl_problem("float32",
                              "[verification.host_function]\nfunction = \"expected\"\nsource = { c = { text = "
                              "\"void expected(const float* x, float* y) { for (int i = 0; i < 64; ++i) y[i] = "
                              "2 * x[i]; }\" } }\n"));
  const auto tuned = ergotune(folder, {"tune", "k.toml", "--device", "opencl", "--no-store"});
  EXPECT_EQ(tuned.exit_code, 1) << tuned.err;
  EXPECT_THAT(tuned.out, AllOf(HasSubstr("\"copy\""), HasSubstr("global = [64]"), HasSubstr("\"expected\"")));
}

TEST(NewUser, ArgumentsThatTheKernelDoesNotTakeAreFoundByTheCompiler) {
  TemporaryFolder folder;
  folder.write("k.cl", "__kernel void copy(__global const float* x, __global float* y) { y[BLOCK] = x[0]; }\n");
  // the reference, which is called with the same arguments, is not to blame
  const std::string reference =
      "[verification.host_function]\nfunction = \"expected\"\nsource = { c = { text = \"void expected(const float* x, "
      "float* y) { y[0] = x[0]; }\" } }\n";
  for (const std::string y : {"", "float64", "int32"}) {
    folder.write("k.toml", opencl_problem(y, y.empty() ? "" : reference));
    for (const std::vector<std::string>& command : {std::vector<std::string>{"space", "k.toml", "--compile", "all"},
                                                    {"tune", "k.toml", "--no-store", "-q", "--json"}}) {
      const auto refused = ergotune(folder, command);
      EXPECT_EQ(refused.exit_code, 2) << refused.out << "once, not with each configuration";
      EXPECT_THAT(refused.err, HasSubstr("k.toml")) << y;
      EXPECT_EQ(refused.err.find("expected"), std::string::npos) << refused.err;
    }
  }
}

TEST(NewUser, AFunctionThatTheSourceDoesNotHaveIsNamedOnce) {
  TemporaryFolder folder;
  folder.write("k.cl", "__kernel void copy_all(__global const float* x, __global float* y) { y[BLOCK] = x[0]; }\n");
  folder.write("k.toml", opencl_problem("float32"));
  std::string text = host_problem(kCopies);
  folder.write("p.toml", text.replace(text.find("\"work\""), 6, "\"werk\""));
  for (const auto& [file, function] : {std::pair("k.toml", "copy_all"), std::pair("p.toml", "work")}) {
    const auto tuned = ergotune(folder, {"tune", file, "--store", "s.db", "-q"});
    EXPECT_EQ(tuned.exit_code, 2) << tuned.out;
    EXPECT_THAT(tuned.err, AllOf(HasSubstr(file), HasSubstr(function)));
  }
}

TEST(NewUser, TheLaunchOfAFunctionOfTheHostIsNotIgnoredInSilence) {
  TemporaryFolder folder;
  const auto notes = [&](const std::string& more) {
    folder.write("p.toml", host_problem(kCopies) + more);
    return json_of(ergotune(folder, {"tune", "p.toml", "--no-store", "-q", "--json"}))["notes"].dump();
  };
  EXPECT_THAT(notes("[kernel.launch]\nglobal = [64]\nblock = [\"turn\"]\n"), HasSubstr("launch"));
  EXPECT_EQ(notes("").find("launch"), std::string::npos);
}

TEST(NewUser, TheCountOfCompilationsIsANumberOrAll) {
  TemporaryFolder folder;
  folder.write("p.toml", host_problem(kCopies));
  for (const char* wrong : {"0", "-1", "3x", "every"})
    EXPECT_EQ(ergotune(folder, {"space", "p.toml", std::string("--compile=") + wrong}).exit_code, 2) << wrong;
  const auto all = ergotune(folder, {"space", "p.toml", "--compile", "all"});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_THAT(all.err, HasSubstr("1 of 3")) << "its progress";
}

TEST(NewUser, AGpuThatIsNotHereHasAProfile) {
  TemporaryFolder folder;
  folder.write("k.cu", "extern \"C\" __global__ void f(float* x) { x[0] = 1; }\n");
  folder.write("k.toml",
               "[kernel]\nsource = \"k.cu\"\nfunction = \"f\"\n[kernel.launch]\nglobal = [64]\nblock = [\"B\"]\n"
               "[[kernel.arguments]]\nname = \"x\"\ntype = \"float32\"\ncount = 64\n[parameters]\nB = [32, 64]\n"
               "[[restrictions]]\nexpression = \"B <= device.max_threads_per_block\"\n");
  ::setenv("ERGOTUNE_CUDA", "/nowhere", 1);
  ::setenv("ERGOTUNE_HIP", "/nowhere", 1);
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"space", "k.toml", "--compile", "1"},
                                             {"tune", "k.toml", "--no-store"},
                                             {"tune", "k.toml", "--no-store", "--device", "cuda:0"}}) {
    const auto result = ergotune(folder, command);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("--profile"));
  }
  ::unsetenv("ERGOTUNE_CUDA");
  ::unsetenv("ERGOTUNE_HIP");
}

TEST(NewUser, TheDoctorRunsAKernelOnEveryDevice) {
  TemporaryFolder folder;
  const auto healthy = ergotune(folder, {"doctor", "--json"});
  EXPECT_EQ(healthy.exit_code, 0) << healthy.err;
  const auto document = nlohmann::json::parse(healthy.out);
  EXPECT_TRUE(document["can_tune"].get<bool>());
  const auto state_of = [](const nlohmann::json& of, const std::string& subject) {
    for (const auto& finding : of["findings"])
      if (finding["area"] == "kernels" && finding["subject"] == subject) return finding["state"].get<std::string>();
    return std::string();
  };
  EXPECT_EQ(state_of(document, "host"), "ok");
  std::string works;  // the first, for which a source is named
  for (const auto& finding : document["findings"])
    if (works.empty() && finding["area"] == "kernels" && finding["state"] == "ok") works = finding["subject"];
  EXPECT_EQ(ergotune(folder, {"doctor"}).out.find("KERNEL.cu") == std::string::npos, !works.starts_with("cuda"));
  EXPECT_THAT(document["findings"].dump(), HasSubstr("NVRTC")) << "it compiles for GPUs that are not here";
  setenv("CC", "/nowhere/cc", 1);
  const auto broken = ergotune(folder, {"doctor", "--json"});
  unsetenv("CC");
  EXPECT_EQ(state_of(nlohmann::json::parse(broken.out), "host"), "failed");
  for (const auto& finding : document["findings"])  // a GPU, or PoCL, needs no compiler for C
    if (const std::string subject = finding["subject"];
        finding["area"] == "kernels" && subject.starts_with("opencl:")) {
      EXPECT_EQ(state_of(nlohmann::json::parse(broken.out), subject), finding["state"]) << broken.out;
    }
}

TEST(NewUser, ADriverThatEndsTheProcessIsNamed) {
  if (!has_opencl()) GTEST_SKIP() << "without an OpenCL loader no driver of OpenCL is loaded";
  TemporaryFolder folder;
  const std::string driver = ERGOTUNE_BINARY_DIR "/tests/fakes/opencl/libaborting_driver.so";
  folder.write("aborting.icd", driver + "\n");
  ::setenv("OCL_ICD_VENDORS", folder.path().c_str(), 1);
  const auto version = ergotune(folder, {"--version"});
  const auto doctor = ergotune(folder, {"doctor", "--json"});
  const auto devices = ergotune(folder, {"devices"});
  ::unsetenv("OCL_ICD_VENDORS");
  EXPECT_EQ(devices.exit_code, 0) << devices.err;
  EXPECT_EQ(version.exit_code, 0) << version.err;
  EXPECT_THAT(version.out, AllOf(HasSubstr("opencl"), HasSubstr("signal 6"), HasSubstr("libaborting_driver.so")));
  EXPECT_EQ(doctor.exit_code, 0) << "kernels in C run: " << doctor.err;
  const auto document = json_of(doctor);
  for (const auto& finding : document["findings"]) {
    if (finding["subject"] != "opencl") continue;
    EXPECT_EQ(finding["state"], "failed");
    EXPECT_THAT(finding["message"].get<std::string>(), HasSubstr("libaborting_driver.so"));
    EXPECT_NE(finding["remedy"], "");
    return;
  }
  ADD_FAILURE() << doctor.out;
}

}  // namespace
}  // namespace ergotune::test
