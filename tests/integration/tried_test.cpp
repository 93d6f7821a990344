// More of what went wrong for a demanding new user: files, stores, verification, what is said and when
// (docs/measurements/new-user-2026-11-22.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "device/fortran.hpp"
#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

using testing::HasSubstr;

std::string problem(const std::string& top, const std::string& arguments, const std::string& source,
                    const std::string& language = "c") {
  return top + "\n[kernel]\nfunction = \"work\"\narguments = [\n" + arguments + "\n]\n[kernel.source." + language +
         "]\ntext = '''\n" + source + "\n'''\n";
}

const std::string kTurns = "[parameters]\nturn = [1, 2, 3]\n";
const std::string kOne = R"({ name = "a", type = "float32", count = 64, access = "write" })";

// A reduction writes as many partial sums as it has parts: elements cannot agree, their sum must.
TEST(Tried, PartialSumsAreComparedByTheirSum) {
  TemporaryFolder folder;
  const std::string arguments = R"({ name = "x", type = "float32", count = 1024, fill = 1 },
{ name = "partial", type = "float32", count = 16, access = "write" })";
  const auto reduction = [&](const std::string& compare, const std::string& value) {
    return "[parameters]\nparts = [1, 4, 16]\n" + compare +
           problem(
               "", arguments,
               "void work(const float* x, float* partial) {\n  for (int p = 0; p < parts; ++p) {\n    float s = 0;\n"
               "    for (int i = p; i < 1024; i += parts) s += x[i];\n    partial[p] = " +
                   value + ";\n  }\n}");
  };
  const auto statuses = [&](const std::string& text) {
    folder.write("p.toml", text);
    return json_of(
        ergotune(folder, {"tune", "p.toml", "--device", "host", "--json", "-q", "--no-store", "--no-confirm"}));
  };
  const auto by_element = statuses(reduction("", "s"));
  EXPECT_EQ(by_element["statuses"]["wrong_result"], 2) << by_element;
  const std::string sum = "[verification.compare]\npartial = \"sum\"\n";
  const auto by_sum = statuses(reduction(sum, "s"));
  EXPECT_EQ(by_sum["statuses"].value("wrong_result", 0), 0) << by_sum;
  const auto wrong = statuses(reduction(sum, "parts == 4 ? s + 1 : s"));
  EXPECT_EQ(wrong["statuses"]["wrong_result"], 1) << wrong;
  EXPECT_THAT(wrong["failures"][0]["message"].get<std::string>(), HasSubstr("\"partial\""));
}

// Fixed form, as every old library has it.
TEST(Tried, FortranOfFixedFormIsCompiledAsThat) {
  SKIP_WITHOUT_FORTRAN();
  TemporaryFolder folder;
  folder.write(
      "old.f",
      "C     A comment of fixed form\n      subroutine work(a)\n      real*4 a(64)\n      do 10 i = 1,\n     & 64\n"
      "   10 a(i) = i\n      end\n");
  folder.write("p.toml", kTurns + "[kernel]\nfunction = \"work\"\nsource = \"old.f\"\narguments = [" + kOne + "]\n");
  const auto result = ergotune(folder, {"tune", "p.toml", "--device", "host", "-q", "--no-store"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST(Tried, OutputsThatNobodyChecksAreSaid) {
  TemporaryFolder folder;
  const std::string read_only = R"({ name = "a", type = "float32", count = 64 })";
  folder.write("p.toml", kTurns + problem("", read_only, "void work(float* a) { a[0] = turn; }"));
  const std::vector<std::vector<std::string>> commands{{"tune", "p.toml", "--device", "host", "--no-store"},
                                                       {"tune", "p.toml", "--device", "sim:a100", "--no-store"},
                                                       {"space", "p.toml", "--device", "host", "--compile", "1"}};
  for (const auto& command : commands)
    EXPECT_THAT(ergotune(folder, command).err, HasSubstr("no argument is declared as written")) << command.front();
}

TEST(Tried, AWrongDefaultIsNotTakenForTheTruthInSilence) {
  TemporaryFolder folder;
  folder.write("p.toml",
               kTurns + problem("", kOne, "void work(float* a) { for (int i = 0; i < 64; ++i) a[i] = turn == 1; }"));
  EXPECT_THAT(ergotune(folder, {"tune", "p.toml", "--device", "host", "--no-store", "-q"}).out,
              HasSubstr("[verification]"));
}

TEST(Tried, TheFailureOfOneConfigurationIsExitCodeOne) {
  TemporaryFolder folder;
  folder.write("p.toml", faults_problem());
  EXPECT_EQ(ergotune(folder, {"measure", "p.toml", "--device", "host", "-c", R"({"mode": "segfault"})"}).exit_code, 1);
  EXPECT_EQ(ergotune(folder, {"measure", "p.toml", "--device", "host", "-c", R"({"mode": "good"})"}).exit_code, 0);
}

TEST(Tried, ABudgetOfEnergyNeedsASensorAndAControlSomethingToSet) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(3));
  ::setenv("ERGOTUNE_SYSFS_ROOT", folder.path().c_str(), 1);  // a machine without a sensor
  const auto result = ergotune(folder, {"tune", "p.toml", "--device", "host", "--budget", "1J"});
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_THAT(result.err, HasSubstr("sensor"));
  const auto control = ergotune(folder, {"tune", "p.toml", "--device", "host", "--control", "cpufreq"});
  EXPECT_EQ(control.exit_code, 2);
  EXPECT_THAT(control.err, HasSubstr("[execution]"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "ergotune.db"));
}

}  // namespace
}  // namespace ergotune::test
