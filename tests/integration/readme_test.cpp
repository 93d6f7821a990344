// What the README shows works as it stands there: its commands, its problem file, and what it tells C++ users
// to write (tests/install builds that). Its Python is run by tests/python/test_readme.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "ergotune/base/error.hpp"
#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path kSource = ERGOTUNE_SOURCE_DIR;

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The first block of the README in this language that stands below a heading.
std::string block(const std::string& heading, const std::string& language) {
  const std::string readme = text_of(kSource / "README.md"), fence = "\n```" + language + "\n";
  const std::size_t section = readme.find("\n## " + heading + "\n");
  const std::size_t begin = section == std::string::npos ? section : readme.find(fence, section);
  if (begin == std::string::npos)
    throw Error("README.md has no block of \"" + language + "\" below \"" + heading + "\"");
  const std::size_t code = begin + fence.size();
  return readme.substr(code, readme.find("\n```", code) + 1 - code);
}

/// A folder where the repository's examples are, as in the README's commands.
struct Checkout : TemporaryFolder {
  Checkout() { std::filesystem::create_directory_symlink(kSource / "examples", path() / "examples"); }
};

TEST(Readme, ItsCommandsRun) {
  const Checkout folder;
  std::istringstream lines(block("Use", ""));
  int run = 0;
  for (std::string line; std::getline(lines, line); ++run) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) arguments.push_back(word == "10min" ? "25" : word);
    ASSERT_GE(arguments.size(), 2u) << line;
    EXPECT_EQ(arguments[0], "ergotune") << line;
    arguments.erase(arguments.begin());
    // Where there is no energy sensor, a simulated device has one.
    if (arguments[0] == "tune") arguments.insert(arguments.end(), {"--device", "sim:a100"});
    const ProcessResult result = ergotune(folder, arguments);
    EXPECT_EQ(result.exit_code, 0) << line << "\n" << result.err;
    EXPECT_FALSE(result.out.empty()) << line;
  }
  EXPECT_EQ(run, 5);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "report.html"));
}

TEST(Readme, ItsProblemFileRuns) {
  const TemporaryFolder folder;
  folder.write("problem.toml", block("Use", "toml"));
  EXPECT_EQ(json_of(ergotune(folder, {"space", "problem.toml", "--json"}))["valid"], 6);
  if (!has_opencl()) GTEST_SKIP() << "no OpenCL device";
  const auto tuned =
      json_of(ergotune(folder, {"tune", "problem.toml", "--device", "opencl", "--json", "--quiet"}));
  EXPECT_EQ(tuned["evaluated"], 6);
  EXPECT_GT(tuned["best"]["quantities"]["time"]["value"].get<double>(), 0);
}

TEST(Readme, WhatItTellsUsersOfTheLibraryIsWhatIsTested) {
  std::istringstream lines(block("From C++", "cmake"));
  const std::string tested = text_of(kSource / "tests" / "install" / "CMakeLists.txt");
  for (std::string line; std::getline(lines, line);) EXPECT_THAT(tested, HasSubstr(line));
}

}  // namespace
}  // namespace ergotune::test
