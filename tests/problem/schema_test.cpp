// What follows from the fields of a problem file: the published schema, the documentation's tables, JSON problem files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/files.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "problem/document/problem_document.hpp"
#include "problem/tables/setting_table.hpp"

namespace ergotune {
namespace {

using testing::HasSubstr;

const std::filesystem::path kRoot = ERGOTUNE_SOURCE_DIR;

std::vector<std::filesystem::path> example_problems() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / "examples"))
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  return files;
}

/// `text` with what the table of fields and settings determines in the place of what is between its comments.
std::string with_tables(std::string text, const std::string& name, const std::string& tables) {
  const std::string head = "<!-- begin: ergotune schema " + name + " --markdown -->\n";
  const auto begin = text.find(head), end = text.find("<!-- end: ergotune schema " + name + " -->");
  if (begin == std::string::npos || end == std::string::npos) return {};
  return text.replace(begin + head.size(), end - begin - head.size(), tables);
}

// ERGOTUNE_WRITE_SCHEMA (scripts/write-schema): written instead of compared.
TEST(ProblemSchema, PublishedFilesAreCurrent) {
  const auto page = kRoot / "docs" / "problem-file.md", schema = kRoot / "schemas" / "problem.schema.json";
  const std::string current =
      with_tables(with_tables(*read_file(page), "problem", problem_tables()), "settings", setting_rows());
  ASSERT_FALSE(current.empty()) << page << " lacks the comments around its tables";
  if (std::getenv("ERGOTUNE_WRITE_SCHEMA")) {
    ASSERT_EQ(write_file(page, current), 0);
    ASSERT_EQ(write_file(schema, problem_schema()), 0);
  }
  EXPECT_EQ(*read_file(page), current) << "run scripts/write-schema";
  EXPECT_EQ(*read_file(schema), problem_schema()) << "run scripts/write-schema";
}

// What is written for a person or a program is the same problem again, by its results and by its document.
TEST(JsonProblem, EveryExampleIsTheSameProblemInJson) {
  const auto files = example_problems();
  ASSERT_GT(files.size(), 30u);
  for (const auto& file : files) {
    SCOPED_TRACE(file.string());
    const Problem problem = load_problem(file);
    const std::string json = to_json(problem);
    const Problem again = parse_problem(json, "/nowhere/problem.json");
    EXPECT_EQ(identity_of(again), identity_of(problem));
    EXPECT_EQ(to_json(again), json);
  }
}

TEST(Attributes, AreFoundByTheirPlaceAndHaveOneType) {
  Problem problem = parse_problem(
      "description = 'whole'\n[parameters]\nx = [1]\n[kernel]\nfunction = 'f'\nsource.c.text = 'void f(void) {}'\n"
      "arguments = []\ndescription = 'inner'\nlaunch.description = 'one loop'\n",
      "p.toml");
  EXPECT_EQ(problem.all_attributes(),
            (Attributes{
                {"description", "whole"}, {"kernel.description", "inner"}, {"kernel.launch.description", "one loop"}}));
  const std::string identity = identity_of(problem);
  problem.kernel().launch.attributes.clear();
  EXPECT_EQ(identity_of(problem), identity);
  problem.kernel().name = "a";
  EXPECT_EQ(problem.all_attributes(), (Attributes{{"description", "whole"}, {"kernels.a.description", "inner"}}));
  Launch launch;
  set_attributes(launch, {{"description", "two loops"}});
  EXPECT_EQ(launch.attributes.at("description"), Value("two loops"));
  EXPECT_THROW(set_attributes(launch, {{"descripton", "two loops"}}), UserError);
  EXPECT_THROW(set_attributes(launch, {{"description", 2}}), UserError);
  EXPECT_THROW(set_attributes(launch, {{"block", 2}}), UserError) << "has a member";
}

struct Fault {
  std::string message;
  SourcePlace place;
};
Fault fault_of(const std::string& text) {
  try {
    (void)parse_problem(text, "p.json");
  } catch (const UserError& error) {
    return {error.message(), error.place()};
  }
  return {};
}

TEST(JsonProblem, FaultsHaveTheirPlace) {
  const std::string head = "{\n  \"space_only\": true,\n  \"parameters\": {\"x\": [1, 2]},\n";
  EXPECT_EQ(fault_of(head + "  \"name\": \"a\"\n}").message, "");
  const Fault unknown = fault_of(head + "  \"nmae\": \"a\"\n}");
  EXPECT_THAT(unknown.message, HasSubstr("\"name\""));
  EXPECT_EQ(unknown.place.line, 4);
  EXPECT_EQ(unknown.place.column, 3);
  const Fault kind = fault_of(head + "  \"description\":   12\n}");
  EXPECT_EQ(kind.place.line, 4);
  EXPECT_EQ(kind.place.column, 20);
  const Fault expression = fault_of(head + "  \"restrictions\": [\"x > 0\", \"x + y < 3\"]\n}");
  EXPECT_EQ(expression.place.line, 4);
  EXPECT_EQ(expression.place.column, 34);
  EXPECT_EQ(fault_of(head + "  \"name\": \"a\",\n \"name\": \"b\"\n}").place.line, 5);
}

TEST(JsonProblem, NumbersThatJsonDoesNotHaveSurvive) {
  Problem problem =
      parse_problem("space_only = true\n[parameters]\nx = [1.0, inf, -inf]\n[constants]\nn = nan\n", "p.toml");
  const Problem again = parse_problem(to_json(problem), "p.json");
  EXPECT_EQ(again.parameters[0].values, problem.parameters[0].values);
  EXPECT_TRUE(std::isnan(again.constants.at("n").as_real()));
}

}  // namespace
}  // namespace ergotune
