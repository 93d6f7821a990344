// Every malformed problem file gives the one message that stands beside it. ERGOTUNE_WRITE_GOLDEN=1 writes
// the messages instead: look at each before committing it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ergotune/problem_file.hpp"

namespace ergotune {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(ERGOTUNE_TEST_DATA) / "malformed";

std::vector<std::string> malformed_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const auto ending = entry.path().extension();
    if (ending == ".toml" || ending == ".json") names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// The message with the file named by its name alone, wherever the checkout lies.
std::string message_of(const std::string& name) {
  try {
    load_problem(kFolder / name);
  } catch (const UserError& error) {
    std::string message = error.what();
    const std::string folder = kFolder.string() + "/";
    for (auto at = message.find(folder); at != std::string::npos; at = message.find(folder)) {
      message.erase(at, folder.size());
    }
    return message + "\n";
  }
  return "no error\n";
}

class Malformed : public testing::TestWithParam<std::string> {};

TEST_P(Malformed, GivesItsMessage) {
  const std::filesystem::path golden = (kFolder / GetParam()).replace_extension(".txt");
  const std::string message = message_of(GetParam());
  if (std::getenv("ERGOTUNE_WRITE_GOLDEN")) {
    std::ofstream(golden) << message;
    return;
  }
  EXPECT_EQ(message, read(golden));
  EXPECT_TRUE(message.starts_with(GetParam() + ":")) << "the place comes first";
}

INSTANTIATE_TEST_SUITE_P(Files, Malformed, testing::ValuesIn(malformed_files()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, '.', '_');
  return name;
});

}  // namespace
}  // namespace ergotune
