// Whether more of what is optimised is better, or less, where the objective does not say it.
#include <gtest/gtest.h>

#include "ergotune/error.hpp"
#include "search/objective.hpp"

namespace ergotune {
namespace {

std::vector<Metric> metrics() {
  const auto metric = [](const char* name, const char* expression, const char* unit) {
    return Metric{name, Expression::parse(expression), unit};
  };
  return {metric("bandwidth", "4 * N / time / 1e9", "GB/s"),
          metric("gflops_per_watt", "2 * N / energy", "GFLOP/s/W"),
          metric("gflops", "2 * N / time / 1e9", "GFLOPS"),
          metric("rate", "N / time", ""),
          metric("edp", "energy * time", ""),
          metric("per_item", "time / N", "ms/item"),
          metric("delay", "time ** 2 * energy", "J*s^2"),
          metric("score", "100 / N", ""),
          metric("share", "N / 3", "%")};
}

Direction direction_of(const std::string& text) {
  return Objective::parse({text, std::nullopt, {}}, metrics()).direction();
}

TEST(ObjectiveDirection, FollowsFromTheUnit) {
  for (const char* more :
       {"bandwidth", "gflops_per_watt", "gflops", "rate", "1 / time", "2 * bandwidth", "bandwidth / power", "-time"})
    EXPECT_EQ(direction_of(more), Direction::maximise) << more;
  for (const char* less :
       {"time", "energy", "edp", "per_item", "delay", "energy * time", "0.3 * time + 0.7 * energy", "time / best(time)",
        "power", "benchmark_time", "0.5 * time + 100 / rate", "max(time, energy)", "time subject to energy <= 3"})
    EXPECT_EQ(direction_of(less), Direction::minimise) << less;
}

TEST(ObjectiveDirection, IsRequestedForWhereNothingSaysIt) {
  for (const std::string name : {"score", "share", "occupancy", "registers", "achieved_occupancy"}) {
    EXPECT_THROW(direction_of(name), UserError) << name;
    EXPECT_EQ(direction_of("max " + name), Direction::maximise) << name;
    EXPECT_EQ(direction_of("min " + name), Direction::minimise) << name;
    EXPECT_NO_THROW(Objective::parse({name, Direction::minimise, {}}, metrics())) << name;
  }
  EXPECT_EQ(direction_of("min bandwidth"), Direction::minimise) << "what is written holds";
}

TEST(ObjectiveDirection, HoldsForEachTermOfAFront) {
  Objective front = Objective::parse({"pareto(energy, bandwidth)", std::nullopt, {}}, metrics());
  Measurement slow, fast;
  slow.quantities["energy"].value = fast.quantities["energy"].value = 1;
  slow.metrics["bandwidth"] = 10;
  fast.metrics["bandwidth"] = 20;
  EXPECT_TRUE(front.better(fast, slow));
  EXPECT_FALSE(front.better(slow, fast));
  EXPECT_THROW(direction_of("pareto(time, score)"), UserError);
}

}  // namespace
}  // namespace ergotune
