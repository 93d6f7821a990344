// Problem files that are refused when they are loaded, with the line of what is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"

namespace ergotune {
namespace {

/// Line of the fault, 0: in no line, -1: none.
int line_of_fault(const std::string& text) {
  try {
    (void)parse_problem(text, "/nowhere/p.toml");
    return -1;
  } catch (const UserError& error) {
    EXPECT_LT(std::string(error.what()).size(), 1000u);
    return error.place().line;
  }
}

std::string repeated(const std::string& part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

std::string space(const std::string& more) {  // `more` begins in line 4
  return "space_only = true\n[parameters]\nX = [1, 2]\n" + more;
}

TEST(Refused, MetricsThatUseThemselvesOrWhatStandsFurtherDown) {
  EXPECT_EQ(line_of_fault(space("[metrics]\na = \"a + 1\"\n")), 5);
  EXPECT_EQ(line_of_fault(space("[metrics]\na = \"b + 1\"\nb = \"a + 1\"\n")), 5);
  EXPECT_EQ(line_of_fault(space("[metrics]\na = \"b + 1\"\nb = \"time\"\n")), 5);
  EXPECT_EQ(line_of_fault(space("[metrics]\nb = \"time\"\na = \"b + 1\"\n")), -1);
}

TEST(Refused, MetricsWithTheNameOfSomethingElse) {
  for (const std::string name : {"time", "energy", "occupancy", "achieved_occupancy", "X", "N", "core_clock_mhz"})
    EXPECT_EQ(line_of_fault(space("[execution]\ncore_clock_mhz = [1000]\n[constants]\nN = 3\n[metrics]\n" + name +
                                  " = \"1 / power\"\n")),
              9)
        << name;
  EXPECT_EQ(line_of_fault(space("[metrics]\nspeed = \"1 / power\"\n")), -1);
}

std::string kernel(const std::string& argument, const std::string& options = "") {  // the argument is in line 8
  return "[constants]\nN = 1000\n[parameters]\nX = [1, 2]\n[kernel]\nfunction = \"f\"\narguments = [\n" + argument +
         "\n]\n[kernel.source.cpp]\ntext = \"x\"\n" + options;
}

TEST(Refused, CountsThatAreNoWholeNumbers) {
  const auto line = [](const std::string& count) {
    return line_of_fault(kernel(R"({ name = "y", type = "float32", count = )" + count + " }"));
  };
  for (const char* count : {"10.5", "\"N/3\"", "true", "\"N > 3\"", "\"'3'\"", "1e300"})
    EXPECT_EQ(line(count), 8) << count;
  for (const char* count : {"10", "\"N/4\"", "10.0", "\"N\""}) EXPECT_EQ(line(count), -1) << count;
  EXPECT_EQ(line_of_fault(kernel(R"({ name = "y", type = "float32", local_count = "N/3" })")), 8);
}

TEST(Refused, OptionsThatNoSourceTakes) {
  const auto line = [](const std::string& key) {
    return line_of_fault(
        kernel(R"({ name = "n", type = "int32", value = 1 })", "[kernel.options]\n" + key + " = [\"-O2\"]\n"));
  };
  for (const char* key : {"cxx", "\"c++\"", "c", "opencl", "fortran"}) EXPECT_EQ(line(key), 13) << key;
  for (const char* key : {"cpp", "all"}) EXPECT_EQ(line(key), -1) << key;
}

TEST(Refused, ParametersWithTheNameOfAQuantity) {
  for (const char* name : {"time", "energy", "peak_memory", "achieved_occupancy"})
    EXPECT_EQ(line_of_fault("space_only = true\n[parameters]\nX = [1, 2]\n" + std::string(name) + " = [1, 2]\n"), 4)
        << name;
  EXPECT_EQ(line_of_fault(space("times = [1, 2]\n")), -1);
}

TEST(Refused, NestingThatWouldOverflowTheStack) {
  constexpr int kDeep = 200'000;
  EXPECT_EQ(line_of_fault(space("[metrics]\n" + repeated("a.", kDeep) + "a = 1\n")), 5);
  EXPECT_EQ(line_of_fault(space("[" + repeated("a . ", kDeep) + "a]\n")), 4);
  EXPECT_EQ(line_of_fault(space("[metrics]\na = { " + repeated("\"a\".", kDeep) + "a = 1 }\n")), 5);
  EXPECT_EQ(line_of_fault(space("[metrics]\na = \"" + repeated("2**", kDeep) + "time\"\n")), 5);
  EXPECT_GE(
      line_of_fault("{\"General\": " + repeated("[", kDeep) + repeated("]", kDeep) + ", \"ConfigurationSpace\": {}}"),
      0);
  EXPECT_GE(line_of_fault(repeated("{\"a\":", kDeep) + "1" + repeated("}", kDeep)), 0);
}

TEST(Refused, DotsInTextsAreNoNesting) {
  const std::string dots = repeated("1.5, ", 1000) + "2.5";
  EXPECT_EQ(line_of_fault("description = '''\n" + repeated(".", 1000) + "\nS. " + repeated("a.b, ", 300) + "'''\n" +
                          "space_only = true\n[parameters]\nX = [" + dots.substr(dots.size() - 3) +
                          "]\nY = [\n1.5, 2.5, 3.5\n]\n"),
            -1);
}

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

/// Every malformed problem file gives the one message that stands beside it. ERGOTUNE_WRITE_GOLDEN=1 writes the
/// messages instead: look at each before committing it.
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
