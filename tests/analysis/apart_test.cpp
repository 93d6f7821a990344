// Rounds taken apart: which are measured, what runs in them, and what is made of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "analysis/apart.hpp"
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
      "{ kernel = \"b\" }] }, \"c\"], order = [\"c\", \"both\"] }, { kernel = \"d\" }]\n";
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

using Method = AttributionMethod;
using Values = std::map<Coalition, Quantity>;

/// A game of so many players with values of any kind.
Values any_game(std::size_t players) {
  Values values;
  for (Coalition c = 1; c < Coalition{1} << players; ++c) {
    Quantity value;
    value.value = *rc::gen::inRange(-1000, 1000) / 8.0;
    value.standard_error = *rc::gen::inRange(0, 100) / 16.0;
    value.n = 5;
    values[c] = value;
  }
  return values;
}

double at(const Values& values, Coalition coalition) { return coalition == 0 ? 0 : values.at(coalition).value; }

TEST(Attribution, ShapleySharesAddUpToTheWhole) {
  EXPECT_TRUE(rc::check("efficiency", [] {
    const auto players = *rc::gen::inRange<std::size_t>(1, 5);
    const Values values = any_game(players);
    double sum = 0;
    for (const Quantity& share : attribute(Method::shapley, players, values)) sum += share.value;
    RC_ASSERT(std::abs(sum - at(values, (1u << players) - 1)) < 1e-9);
  }));
}

TEST(Attribution, WhoAddsTheSameHasTheSame) {
  EXPECT_TRUE(rc::check("symmetry", [] {
    const auto players = *rc::gen::inRange<std::size_t>(2, 5);
    Values values = any_game(players);
    for (auto& [coalition, value] : values)  // players 0 and 1 change places
      if ((coalition & 3) == 2) value = values.at((coalition & ~Coalition{3}) | 1);
    for (const auto method : {Method::shapley, Method::marginal}) {
      const auto shares = attribute(method, players, values);
      RC_ASSERT(std::abs(shares[0].value - shares[1].value) < 1e-9);
      RC_ASSERT(std::abs(shares[0].standard_error - shares[1].standard_error) < 1e-9);
    }
  }));
}

TEST(Attribution, ByHand) {
  // Two kernels of 3 J and 5 J alone that take 6 J together: the 2 J that are saved go to both alike.
  Values values;
  values[1] = {3, 0.3, 7, "", "", Provenance::measured};
  values[2] = {5, 0.4, 9, "", "", Provenance::measured};
  values[3] = {6, 1.2, 8, "", "", Provenance::measured};
  auto shares = attribute(Method::shapley, 2, values);
  EXPECT_DOUBLE_EQ(shares[0].value, 2);
  EXPECT_DOUBLE_EQ(shares[1].value, 4);
  EXPECT_DOUBLE_EQ(shares[0].standard_error, 0.5 * std::sqrt(0.09 + 0.16 + 1.44));
  EXPECT_EQ(shares[0].provenance, Provenance::modelled);
  EXPECT_EQ(shares[0].n, 7);
  shares = attribute(Method::marginal, 2, values);
  EXPECT_DOUBLE_EQ(shares[0].value, 1);
  EXPECT_DOUBLE_EQ(shares[1].value, 3);
  EXPECT_DOUBLE_EQ(shares[1].standard_error, std::sqrt(0.09 + 1.44));
}

TEST(Attribution, OnlyWhatIsNeededIsMeasured) {
  EXPECT_THAT(coalitions_for(Method::marginal, 3), testing::ElementsAre(7u, 6u, 5u, 3u));
  EXPECT_EQ(coalitions_for(Method::shapley, 4).size(), 15u);
  EXPECT_EQ(coalitions_for(Method::shapley, 4).front(), 15u);
  EXPECT_THAT(coalitions_for(Method::marginal, 1), testing::ElementsAre(1u));
  EXPECT_THROW(coalitions_for(Method::shapley, 5), UserError);
  EXPECT_EQ(coalitions_for(Method::marginal, 5).size(), 6u);
  EXPECT_THROW(attribute(Method::marginal, 2, {{3, {}}}), Error);
  EXPECT_THROW(attribution_method("shapely"), UserError);
}

}  // namespace
}  // namespace ergotune
