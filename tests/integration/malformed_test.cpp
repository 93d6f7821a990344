// The command on malformed problem files: exit code 2, the one message on standard error, nothing on standard output.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/process.hpp"

namespace ergotune {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(ERGOTUNE_TEST_DATA) / "malformed";

std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

TEST(MalformedProblems, TheCommandGivesTheMessageAndExitsWith2) {
  ProcessOptions options;
  options.folder = kFolder.string();
  options.timeout = 20;
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".toml" && entry.path().extension() != ".json") continue;
    ++count;
    const std::string name = entry.path().filename().string();
    const ProcessResult result = run_process({ERGOTUNE_BINARY_DIR "/ergotune", "space", name}, options);
    EXPECT_EQ(result.exit_code, 2) << name;
    EXPECT_EQ(result.out, "") << name;
    EXPECT_EQ(result.err, "ergotune: " + read(std::filesystem::path(entry.path()).replace_extension(".txt"))) << name;
  }
  EXPECT_GE(count, 40u);
}

}  // namespace
}  // namespace ergotune
