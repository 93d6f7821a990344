#include "kernel/macro_clashes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "ergotune/problem_file.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

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
