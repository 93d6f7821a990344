#include "analysis/tradeoff.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "analysis/svg_chart.hpp"
#include "search/pareto.hpp"

namespace ergotune {
namespace {

/// A recording of time, energy and one more quantity; one parameter that numbers the rows.
Recording recording_of(const std::vector<double>& time, const std::vector<double>& energy,
                       const std::vector<double>& other = {}) {
  Recording r;
  Parameter row;
  row.name = "row";
  for (std::size_t i = 0; i < time.size(); ++i) {
    row.values.push_back(Value(static_cast<int>(i)));
    r.positions.push_back(static_cast<std::uint32_t>(i));
    r.statuses.push_back(Status::ok);
  }
  r.parameters = {row};
  r.columns.push_back({"time", time, {}, {}, false});
  if (!energy.empty()) r.columns.push_back({"energy", energy, {}, {}, false});
  if (!other.empty()) r.columns.push_back({"other", other, {}, {}, false});
  return r;
}

TEST(ConvexHull, HoldsEveryPoint) {
  EXPECT_TRUE(rc::check("no point lies outside of any edge",
                        [](const std::vector<std::pair<std::int16_t, std::int16_t>>& points) {
                          std::vector<double> x, y;
                          for (const auto& [a, b] : points) {
                            x.push_back(a);
                            y.push_back(b);
                          }
                          const auto hull = convex_hull(x, y);
                          for (std::size_t i = 0; hull.size() >= 3 && i < hull.size(); ++i) {
                            const std::size_t a = hull[i], b = hull[(i + 1) % hull.size()];
                            for (std::size_t k = 0; k < x.size(); ++k) {
                              RC_ASSERT((x[b] - x[a]) * (y[k] - y[a]) - (y[b] - y[a]) * (x[k] - x[a]) >= 0);
                            }
                          }
                        }));
}

TEST(ParetoFront, IsExactlyWhatNothingBeats) {
  EXPECT_TRUE(
      rc::check("agrees with the definition", [](const std::vector<std::pair<std::uint8_t, std::uint8_t>>& points) {
        std::vector<double> x, y;
        for (const auto& [a, b] : points) {
          x.push_back(a);
          y.push_back(b);
        }
        std::vector<std::vector<double>> both;
        for (std::size_t i = 0; i < x.size(); ++i) both.push_back({x[i], y[i]});
        const auto front = pareto_front(both);
        for (std::size_t i = 0; i < x.size(); ++i) {
          bool beaten = false, same = false;
          for (std::size_t k = 0; k < x.size(); ++k) {
            beaten = beaten || (x[k] <= x[i] && y[k] <= y[i] && (x[k] < x[i] || y[k] < y[i]));
          }
          for (const std::size_t f : front) same = same || (x[f] == x[i] && y[f] == y[i]);
          RC_ASSERT(beaten != same);
        }
      }));
}

TEST(Tradeoff, QuadrantsCountWhatBeatsTheTwoWinners) {
  // speed = 1/time, efficiency = 1/energy. Fastest: row 0 (1 s, 10 J); most efficient: row 1 (2 s, 5 J).
  const Recording r = recording_of({1.0, 2.0, 1.5, 1.5, 3.0, 4.0}, {10, 5, 8, 12, 7, 20}, {6, 5, 4, 3, 2, 1});
  const Tradeoff t = analyse_tradeoff(r);
  ASSERT_TRUE(t.quadrants);
  EXPECT_EQ(t.points[t.quadrants->fastest].row, 0u);
  EXPECT_EQ(t.points[t.quadrants->most_efficient].row, 1u);
  EXPECT_EQ(t.quadrants->beat_fastest_in_energy, 3u);        // rows 1, 2, 4
  EXPECT_EQ(t.quadrants->beat_most_efficient_in_speed, 3u);  // rows 0, 2, 3
  EXPECT_EQ(t.quadrants->beat_both, 1u);                     // row 2
  EXPECT_DOUBLE_EQ(t.quadrants->energy_saved, 0.5);
  EXPECT_DOUBLE_EQ(t.quadrants->speed_lost, 0.5);
  EXPECT_DOUBLE_EQ(t.quadrants->time_added(), 1.0);
  EXPECT_THAT(t.pareto, testing::ElementsAre(0, 2, 1));
  EXPECT_DOUBLE_EQ(t.spread->energy_within_one_percent, 1.5);  // rows 2 and 3, both 1.5 s
  EXPECT_EQ(t.hull.front(), t.quadrants->most_efficient);
}

TEST(Tradeoff, FailedRowsAndPowerWithoutEnergyAreUnderstood) {
  Recording r = recording_of({1.0, 2.0, 4.0}, {});
  r.statuses[0] = Status::compile_error;
  Tradeoff t = analyse_tradeoff(r);
  EXPECT_EQ(t.points.size(), 2u);
  EXPECT_FALSE(t.has_energy);
  EXPECT_FALSE(t.quadrants);
  EXPECT_THAT(t.pareto, testing::SizeIs(1));
  r.columns.push_back({"power", {100, 50, 20}, {}, {}, false});
  t = analyse_tradeoff(r);
  ASSERT_TRUE(t.has_energy);
  EXPECT_DOUBLE_EQ(t.points[0].energy, 100);
  EXPECT_DOUBLE_EQ(t.points[1].energy, 80);
}

TEST(SvgChart, SaysWhereItsNumbersComeFromAndEscapesNames) {
  Chart chart;
  chart.title = "a < b & c";
  chart.note = "simulated";
  chart.series = {{"points", {1, 2}, {3, 4}, false, false, {}}};
  const std::string svg = to_svg({chart, Chart{}});
  EXPECT_THAT(svg, testing::HasSubstr("a &lt; b &amp; c"));
  EXPECT_THAT(svg, testing::HasSubstr("simulated"));
  EXPECT_THAT(svg, testing::Not(testing::HasSubstr("nan")));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
}

}  // namespace
}  // namespace ergotune
