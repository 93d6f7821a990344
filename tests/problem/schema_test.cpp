// What follows from the fields of a problem file: the published schema, the documentation's tables, JSON problem files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/files.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "problem/document/problem_document.hpp"
#include "problem/document/schema.hpp"

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

TEST(ProblemSchema, PublishedFileIsCurrent) {
  EXPECT_EQ(read_file(kRoot / "schemas" / "problem.schema.json"), problem_schema()) << "run scripts/write-schema";
}

TEST(ProblemSchema, DocumentedTablesAreCurrent) {
  EXPECT_THAT(*read_file(kRoot / "docs" / "problem-file.md"), HasSubstr(problem_tables()))
      << "run scripts/write-schema";
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
