#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "ergotune/problem_file.hpp"
#include "kernel/macro_clashes.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;
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
