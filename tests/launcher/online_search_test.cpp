#include "launcher/online_search.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace ergotune::launcher {
namespace {

/// An application whose launches with configuration i take seconds[i]; a negative time: it fails.
struct Loop {
  std::vector<double> seconds;
  OnlineSearch search;
  std::uint64_t launches = 0, prolonged = 0;  ///< prolonged: each step of this number by 100 s
  std::uint64_t steps = 0;
  double spent = 0, worst = 0;

  Loop(std::vector<double> times, ConfigurationIndex start, double bound)
      : seconds(std::move(times)), search(space(seconds.size()), start, bound) {}
  static SearchSpace space(std::size_t size) {
    Parameter parameter;
    parameter.name = "x";
    for (std::size_t i = 0; i < size; ++i) parameter.values.emplace_back(static_cast<std::int64_t>(i));
    return SearchSpace::build({parameter}, {});
  }
  void launch(double time) {
    ++launches;
    spent += time;
    worst = std::max(worst, spent / (static_cast<double>(launches) * seconds[search.start()]));
  }
  void run(std::uint64_t most) {
    while (const auto step = search.next()) {
      const double now = seconds[search.running()];
      const double tested = seconds[step->index] + (++steps == prolonged ? 100 : 0);
      while (search.due(*step) > launches + 1 && launches < most) launch(now);
      if (launches >= most) return;
      launch(step->index == search.running() ? now : std::max(tested, 0.0));
      search.count(launches);
      search.take(*step, tested < 0 ? std::nullopt : std::optional(tested), std::max(tested, 0.0) - now);
    }
  }
};

TEST(OnlineSearch, FindsTheFastestWithinTheBound) {
  Loop loop({1.0, 1.3, 0.9, -1, 0.4, 1.5, 0.8, 1.1}, 0, 0.05);
  loop.run(1'000'000);
  EXPECT_EQ(loop.search.running(), 4u);
  EXPECT_EQ(loop.search.tried(), 7u);
  EXPECT_LE(loop.worst, 1.05 + 1e-9);
  EXPECT_NEAR(loop.search.spent, loop.spent, 1e-6 * loop.spent);
  EXPECT_EQ(loop.search.next(), std::nullopt);
}

TEST(OnlineSearch, OneProlongedLaunchDoesNotHideTheFastest) {
  Loop undisturbed({1.0, 0.5}, 0, 0.5);
  undisturbed.run(1'000'000);
  for (std::uint64_t step = 1; step <= undisturbed.steps; ++step) {
    Loop loop({1.0, 0.5}, 0, 0.5);
    loop.prolonged = step;
    loop.run(1'000'000);
    EXPECT_EQ(loop.search.running(), 1u) << "step " << step;
  }
}

TEST(OnlineSearch, TriesNothingBeforeLaunchesHavePaidForIt) {
  Loop loop({1.0, 0.5}, 0, 0.05);
  loop.run(100);
  EXPECT_EQ(loop.search.tried(), 0u);
  loop.run(1000);
  EXPECT_EQ(loop.search.tried(), 1u);
}

TEST(OnlineSearch, StaysWithTheStartWhereNothingIsFaster) {
  Loop loop({1.0, 1.0, 2.0, -1}, 0, 0.5);
  loop.run(1'000'000);
  EXPECT_EQ(loop.search.running(), 0u);
  EXPECT_EQ(loop.search.tried(), 3u);
}

}  // namespace
}  // namespace ergotune::launcher
