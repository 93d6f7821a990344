// Names that an objective may use although nobody wrote a metric for them.
#include "search/known_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "ergotune/problem/program.hpp"

namespace ergotune {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names_of(const std::vector<Metric>& metrics) {
  std::vector<std::string> names;
  for (const Metric& metric : metrics) names.push_back(metric.name);
  return names;
}

TEST(KnownNames, AreAddedOnceAndOnlyWhereNothingHasThem) {
  const Metric gflops{"gflops", Expression::parse("1 / time"), "GFLOP/s"};
  EXPECT_THAT(names_of(with_names({gflops}, {"time", "gflops", "residual", "energy", "residual"})),
              ElementsAre("gflops", "residual"));
  EXPECT_THAT(names_of(with_names({}, {})), ElementsAre());
}

TEST(KnownNames, OfAProgramAreWhatItPrints) {
  Problem problem;
  problem.metrics = {{"gflops", Expression::parse("1 / time"), "GFLOP/s"}};
  EXPECT_THAT(names_of(known_metrics(problem)), ElementsAre("gflops"));
  Program program;
  program.output = {{"residual", "([0-9.]+)"}, {"time", "([0-9.]+) s"}};
  problem.program = std::make_shared<const Program>(std::move(program));
  EXPECT_THAT(names_of(known_metrics(problem)), ElementsAre("gflops", "residual"));
}

}  // namespace
}  // namespace ergotune
