// Rounds taken apart: which are measured, what runs in them, and what is made of them.
#include "analysis/apart.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"

namespace ergotune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Kernels a, b, c, d: a and b in one branch, c in another, d after them.
Problem problem() {
  std::string text = "[buffers]\nx = { type = \"float32\", count = 8 }\ny = { type = \"float32\", count = 8 }\n";
  for (const char* name : {"a", "b", "c", "d"})
    text += std::string("[kernels.") + name + "]\nfunction = \"" + name +
            "\"\nsource.opencl.text = \"x\"\nparameters = { B = [1] }\n"
            "arguments = [{ buffer = \"x\" }, { buffer = \"y\", access = \"write\" }]\nlaunch = { global = [8], block "
            "= [1] }\n";
  text +=
      "[workload]\nsteps = [{ concurrent = [{ name = \"both\", steps = [{ kernel = \"a\" }, { swap = [\"x\", \"y\"] }, "
      "{ kernel = \"b\" "
      "}] }, \"c\"], order = [\"c\", \"both\"] }, { kernel = \"d\" }]\n";
  return parse_problem(text, "p.toml");
}

std::vector<std::string> names(const std::vector<IterationVariant>& rounds) {
  std::vector<std::string> list;
  for (const IterationVariant& round : rounds) list.push_back(round.name);
  return list;
}

std::vector<std::size_t> launched(const std::vector<Step>& steps) {
  std::vector<std::size_t> list;
  for (const Step& step : steps) {
    if (step.kind == Step::Kind::launch) list.push_back(step.kernel);
    for (const std::size_t kernel : launched(step.steps)) list.push_back(kernel);
  }
  return list;
}

TEST(Apart, KernelsOfABranchCountAsOne) {
  const std::vector<IterationPart> parts = parts_of(problem());
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].name, "both");
  EXPECT_THAT(parts[0].kernels, ElementsAre(0u, 1u));
  EXPECT_EQ(parts[1].name, "c");
  EXPECT_EQ(parts[2].name, "d");
}

TEST(Apart, RoundsAreThoseThatAreNeeded) {
  EXPECT_THAT(names(iteration_variants(problem())),
              ElementsAre("as given", "in sequence", "a alone", "b alone", "c alone", "d alone"));
  const auto rounds = iteration_variants(problem(), AttributionMethod::marginal);
  EXPECT_THAT(names(rounds), ElementsAre("as given", "in sequence", "a alone", "b alone", "c alone", "d alone",
                                         "without both", "without c", "without d"));
  EXPECT_THAT(launched(rounds[6].problem.steps), ElementsAre(2u, 3u));
  EXPECT_THAT(launched(rounds[7].problem.steps), ElementsAre(0u, 1u, 3u));
  EXPECT_EQ(rounds[7].problem.steps.front().kind, Step::Kind::group);  // nothing is side by side any more
  EXPECT_EQ(rounds[8].problem.steps.front().kind, Step::Kind::concurrent);
  EXPECT_EQ(rounds[8].problem.verification.kind, Verification::Kind::none);
  EXPECT_THAT(names(iteration_variants(problem(), AttributionMethod::shapley)),
              ElementsAre("as given", "in sequence", "a alone", "b alone", "c alone", "d alone", "without both",
                          "without c", "without d", "branch both alone"));
  Problem one = problem();
  one.kernels.resize(1);
  one.kernels.front().name.clear();
  EXPECT_THROW(iteration_variants(one), UserError);
}

TEST(Apart, WhatIsNotMeasuredIsNotAttributed) {
  const Problem given = problem();
  const auto rounds = iteration_variants(given, AttributionMethod::shapley);
  std::vector<Measurement> measured(rounds.size());
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    measured[i].quantities["time"] = {1.0 + static_cast<double>(rounds[i].parts), 0.1, 3, "", "", Provenance::measured};
    if (i > 0) measured[i].quantities["energy"] = measured[i].quantities["time"];
  }
  Attribution found = attribute(given, AttributionMethod::shapley, rounds, measured);
  ASSERT_TRUE(found.shares.contains("time"));
  EXPECT_FALSE(found.shares.contains("energy"));  // that of the whole is not known
  double sum = 0;
  for (const Quantity& share : found.shares.at("time")) sum += share.value;
  EXPECT_DOUBLE_EQ(sum, 8);
  measured.back().status = Status::runtime_error;
  found = attribute(given, AttributionMethod::shapley, rounds, measured);
  EXPECT_THAT(found.shares, IsEmpty());
}

}  // namespace
}  // namespace ergotune
