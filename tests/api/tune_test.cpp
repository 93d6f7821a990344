// The public C++ function that tunes a problem.
#include <gtest/gtest.h>

#include "ergotune/ergotune.hpp"

namespace ergotune::test {
namespace {

TuneResult tuned_with(std::map<std::string, std::string> settings) {
  TuneOptions options;
  options.settings = std::move(settings);
  options.settings.insert({{"device", "sim:a100"}, {"budget", "6"}});
  return tune(load_problem(ERGOTUNE_SOURCE_DIR "/examples/gemm/gemm.toml"), options);
}

double value_of(const TuneResult& result, const std::string& quantity) {
  return result.best.at(0).measurement.quantities.at(quantity).value;
}

TEST(TuneFunction, SettingsTakePrecedenceOverTheProblem) {
  const TuneResult fast = tuned_with({});
  EXPECT_DOUBLE_EQ(fast.best.at(0).objective.value(), value_of(fast, "time")) << "the problem's objective";
  EXPECT_EQ(fast.provenance, Provenance::simulated);
  EXPECT_LE(fast.evaluated, 6u);
  const TuneResult frugal = tuned_with({{"objective", "energy"}});
  EXPECT_DOUBLE_EQ(frugal.best.at(0).objective.value(), value_of(frugal, "energy"));
}

TEST(TuneFunction, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW(tuned_with({{"budgets", "6"}}), UserError);
  EXPECT_THROW(tuned_with({{"objective", "speed"}}), UserError);
  EXPECT_THROW(tuned_with({{"min_repeats", "9"}, {"max_repeats", "3"}}), UserError);
}

}  // namespace
}  // namespace ergotune::test
