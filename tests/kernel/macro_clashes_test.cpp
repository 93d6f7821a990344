#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "device/backend.hpp"
#include "ergotune/problem_file.hpp"
#include "kernel/macro_clashes.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> declared(const std::string& text, Language language = Language::opencl) {
  KernelSource source;
  source.language = language;
  source.text = text;
  std::vector<std::string> names;
  for (const MacroClash& clash : macro_clashes(source, {"m", "n", "k", "block_size_x"})) names.push_back(clash.name);
  return names;
}

TEST(MacroClashes, FindsDeclarations) {
  EXPECT_THAT(declared("void f() { int k = 0; }"), ElementsAre("k"));
  EXPECT_THAT(declared("void f(const int n, __global float* restrict m) {}"), ElementsAre("n", "m"));
  EXPECT_THAT(declared("void f() { for (size_t i = 0, k = g(1, n); i < m; ++i) {} }"), ElementsAre("k"));
  EXPECT_THAT(declared("void f() { my_type k; float x[4], *y, k2; vec n = {1, m}; }"), ElementsAre("k", "n"));
  EXPECT_THAT(declared("void f() { float *m; float &n = x; const unsigned\n  k; }"), ElementsAre("m", "n", "k"));
  EXPECT_THAT(declared("__shared__ float block_size_x[2];"), ElementsAre("block_size_x"));
}

TEST(MacroClashes, ATypeIsNoDeclaration) {
  EXPECT_THAT(declared("void f(const k* a, __global n *b, m c, const k & d) { k x = 1; static n* const y = b; }"),
              IsEmpty());
  EXPECT_THAT(declared("void f(const k n) {}"), ElementsAre("n"));
}

TEST(MacroClashes, LeavesUsesAlone) {
  EXPECT_THAT(declared("int f(int i) { if (i < n) return k; else n ? a * k : b & m; return sizeof k; }"), IsEmpty());
  EXPECT_THAT(declared("void f(float a[m], float b[n]) { g(a, k, m); float c[n], d[k]; a[i, k] = n; }"), IsEmpty());
  EXPECT_THAT(declared("void f() { const Tile tile = tile_of<a / b, k / 2, n>(); }"), IsEmpty());
  EXPECT_THAT(declared("void f() { const Tile tile = tile_at<a, n, m == 1>(i), k = other; }"), ElementsAre("k"));
  EXPECT_THAT(declared("// int k;\n/* int m;\n int n; */ const char* s = \"int k\";"), IsEmpty());
  EXPECT_THAT(declared("#define twice(x) \\\n  int k = x\nint i = k;"), IsEmpty());
  EXPECT_THAT(declared("#ifndef n\nconst int n = 5;\n#endif"), IsEmpty()) << "its author knows";
  EXPECT_THAT(declared("kernel __attribute__((reqd_work_group_size(block_size_x, 1, 1))) void f() {}"), IsEmpty());
  EXPECT_THAT(declared("integer :: k", Language::fortran), IsEmpty());
  EXPECT_THAT(declared(""), IsEmpty());
  EXPECT_THAT(declared("/* no end"), IsEmpty());
  EXPECT_THAT(declared("\"no end"), IsEmpty());
}

TEST(MacroClashes, ThePlaceIsTheDeclarations) {
  KernelSource source;
  source.file = "gemm.cl";
  source.text = "void f() {\n  /* two\n lines */ int k = 1;\n}";
  const auto clashes = macro_clashes(source, {"k"});
  ASSERT_EQ(clashes.size(), 1u);
  EXPECT_EQ(clashes[0].place.to_string(), "gemm.cl:3:15");
  source.language = Language::opencl;
  Problem problem;
  problem.kernel().sources = {source};
  const auto notes = source_notes(problem, {{"k", 512}, {"device.k", 1}}, "opencl");
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("gemm.cl:3:15: \"k\""));
  EXPECT_THAT(notes[0], HasSubstr("512"));
}

// Every kernel among the examples compiles, so nothing may be said about it.
TEST(MacroClashes, TheExamplesAreClean) {
  int seen = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(ERGOTUNE_SOURCE_DIR) / "examples")) {
    if (entry.path().extension() != ".toml") continue;
    const Problem problem = load_problem(entry.path());
    for (const char* backend : {"cuda", "hip", "opencl", "host"}) {
      const auto has_source = [&](const Kernel& kernel) { return has_source_for(kernel, backend); };
      if (!std::ranges::all_of(problem.kernels, has_source)) continue;
      EXPECT_THAT(source_notes(problem, problem.constants, backend), IsEmpty()) << entry.path();
    }
    ++seen;
  }
  EXPECT_GT(seen, 5);
}

TEST(MacroClashes, AreFoundInAReferenceOnTheHostToo) {
  const Problem problem = parse_problem(
      "[constants]\nwidth = 8\n[parameters]\nTILE = [1, 2]\n[kernel]\nfunction = 'f'\nlaunch = { grid = 1, block = 1 "
      "}\n[kernel.source.opencl]\n"
      "text = 'kernel void f() {}'\n[verification.host_function]\nfunction = "
      "'g'\n[verification.host_function.source.c]\n"
      "text = 'void g() { int TILE = 3, width = TILE; }'\n",
      "p.toml");
  EXPECT_EQ(source_notes(problem, problem.constants, "opencl").size(), 2u);
}

TEST(SourceNotes, NameArgumentsInAnotherOrderThanTheSources) {
  const auto notes = [](const std::string& first, const std::string& second) {
    const Problem problem = parse_problem(
        "[parameters]\nTILE = [1]\n[kernel]\nfunction = 'f<{{TILE}}>'\nlaunch = { grid = 1, block = 1 }\narguments = "
        "[{ name = '" +
            first + "', type = 'int32', count = 4 }, { name = '" + second +
            "', type = 'int32', count = 4 }]\n"
            "[kernel.source.cuda]\ntext = 'template <int T> __global__ void f(const int* from, int* to) {}'\n",
        "p.toml");
    return source_notes(problem, problem.constants, "cuda").size();
  };
  EXPECT_EQ(notes("from", "to"), 0u);
  EXPECT_EQ(notes("to", "from"), 1u);
  EXPECT_EQ(notes("x", "y"), 0u) << "names of the problem's own";
}

TEST(SourceNotes, NameVariablesOfTheDeviceThatNothingFills) {
  const auto notes = [](const std::string& body) {
    const Problem problem = parse_problem(
        "[parameters]\nTILE = [1]\n[kernel]\nfunction = 'f'\nlaunch = { grid = 1, block = 1 }\n"
        "[kernel.source.cuda]\ntext = '__device__ float table[8]; __global__ void f(float* to) { " +
            body + " }'\n",
        "p.toml");
    return source_notes(problem, problem.constants, "cuda").size();
  };
  EXPECT_EQ(notes("to[0] = table[1];"), 1u);
  EXPECT_EQ(notes("float& own = table[1]; own = 2; to[0] = own;"), 0u);
  EXPECT_EQ(notes("float* own = table; own[1] = 2; to[0] = own[1];"), 0u);
  EXPECT_EQ(notes("table[1] = 2; to[0] = table[1];"), 0u);
}

Problem problem_with(const std::string& source, const std::string& kernel = "") {
  return parse_problem(
      "restrictions = ['UNUSED < 5']\n[parameters]\nTILE = [1, 2]\nLEVEL = ['-O1', '-O2']\nUNUSED = [1, 2]\n"
      "COUNT = [8, 16]\nONE = [1]\n[kernel]\nfunction = 'f'\n" +
          kernel + "[kernel.source.c]\ntext = '''" + source + "'''\n",
      "p.toml");
}

TEST(UnusedParameters, AreThoseThatNothingDependsOn) {
  const std::string options =
      "options = ['{{LEVEL}}']\narguments = [{ name = 'x', type = 'int32', value = '2 * COUNT' }]\n";
  EXPECT_THAT(unused_parameters(problem_with("void f(int* x) { x[0] = TILE; }", options)), ElementsAre("UNUSED"));
  EXPECT_THAT(unused_parameters(problem_with("void f(int* x) { x[TILES] = 1; }")),
              ElementsAre("TILE", "LEVEL", "UNUSED", "COUNT"));
  EXPECT_THAT(unused_parameters(problem_with("#include \"h.h\"\nvoid f(int* x) {}")), IsEmpty())
      << "the file may use them";
}

TEST(UnusedParameters, TheExamplesHaveNone) {
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(ERGOTUNE_SOURCE_DIR) / "examples"))
    if (const auto file = entry.path(); file.extension() == ".toml" && file.parent_path().filename() != "clocks") {
      EXPECT_THAT(unused_parameters(load_problem(file)), IsEmpty()) << file;
    }
}

}  // namespace
}  // namespace ergotune
