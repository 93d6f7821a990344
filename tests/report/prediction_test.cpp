#include "report/prediction.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ergotune/random.hpp"

namespace ergotune {
namespace {

SearchSpace grid() {
  std::vector<Parameter> list(3);
  const char* names[] = {"a", "b", "c"};
  for (std::size_t p = 0; p < 3; ++p) {
    list[p].name = names[p];
    for (int i = 1; i <= 10; ++i) list[p].values.emplace_back(i);
  }
  return SearchSpace::build(list, {});
}

double time_of(const Configuration& c) {
  const double a = c[0].as_real(), b = c[1].as_real(), k = c[2].as_real();
  return 1e-3 * (1 + 0.3 * std::pow(std::log2(a / 4), 2) + 0.2 * std::abs(b - 6) + 0.05 * k * a / b);
}

struct PredictionTest : ::testing::Test {
  PredictionTest() : space(grid()) {}
  Predictor::Known sample(std::size_t count, double noise) {
    Random random(3);
    Predictor::Known known;
    for (const ConfigurationIndex index : space.sample_distinct(count, random))
      known.push_back({index, {{"time", time_of(space.configuration(index)) * std::exp(noise * random.normal())}}});
    return known;
  }
  SearchSpace space;
};

TEST_F(PredictionTest, IntervalsHoldWhereNothingWasMeasured) {
  for (const double noise : {0.0, 0.05}) {
    const Predictor::Known known = sample(150, noise);
    const Predictor predictor(space, known);
    const QuantityModel& model = predictor.models().at("time");
    EXPECT_EQ(model.left_out.size(), 150u);
    EXPECT_LT(model.median_error, 0.1);
    std::vector<ConfigurationIndex> all;
    for (ConfigurationIndex i = 0; i < space.size(); ++i) all.push_back(i);
    Random random(9);
    std::size_t held = 0, open = 0;
    for (const Prediction& one : predictor.at(all)) {
      if (!one.measured.empty()) continue;
      const double value = time_of(space.configuration(one.index)) * std::exp(noise * random.normal());
      const PredictedValue& predicted = one.values.at("time");
      ++open;
      held += value < predicted.value * predicted.factor && value > predicted.value / predicted.factor;
    }
    EXPECT_EQ(open, space.size() - 150);
    EXPECT_GT(static_cast<double>(held), 0.9 * static_cast<double>(open));
  }
}

// A search measures what seems good, and the model is fitted to just that.
TEST_F(PredictionTest, IntervalsHoldBesideWhatASearchChose) {
  std::size_t held = 0, open = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Random random(seed);
    Predictor::Known known;
    for (const ConfigurationIndex index : space.sample_distinct(120, random))
      known.push_back({index, {{"time", time_of(space.configuration(index)) * std::exp(0.01 * random.normal())}}});
    std::ranges::sort(known, {}, [](const auto& one) { return one.second.at("time"); });
    known.erase(known.begin() + 35, known.end() - 5);
    const Predictor predictor(space, known);
    EXPECT_LT(predictor.models().at("time").coverage, 0.98) << "of those that were measured";
    std::vector<ConfigurationIndex> all(space.size());
    std::iota(all.begin(), all.end(), ConfigurationIndex{0});
    for (const Prediction& one : predictor.at(all)) {
      if (!one.measured.empty()) continue;
      const double value = time_of(space.configuration(one.index)) * std::exp(0.01 * random.normal());
      const PredictedValue& predicted = one.values.at("time");
      ++open;
      held += value < predicted.value * predicted.factor && value > predicted.value / predicted.factor;
    }
  }
  EXPECT_GT(static_cast<double>(held), 0.9 * static_cast<double>(open));
}

TEST_F(PredictionTest, NamesTheBestThatWereNotMeasured) {
  const Predictor predictor(space, sample(150, 0));
  const std::vector<Prediction> best = predictor.best("time", 3);
  ASSERT_EQ(best.size(), 3u);
  double least = 1e300;
  for (ConfigurationIndex i = 0; i < space.size(); ++i) least = std::min(least, time_of(space.configuration(i)));
  for (const Prediction& one : best) {
    EXPECT_TRUE(one.measured.empty());
    EXPECT_LT(time_of(space.configuration(one.index)), 1.3 * least);
  }
  EXPECT_TRUE(predictor.best("energy", 3).empty());
}

TEST_F(PredictionTest, ListsByTheObjectiveOfTheSession) {
  Predictor::Known known = sample(30, 0);
  for (auto& [index, values] : known) values["energy"] = 100 * values["time"];
  const Predictor predictor(space, known);
  const auto chosen = [&](const std::string& objective, const std::string& asked) {
    return quantity_of_choice({"p", "d", "measured", objective, grid(), known}, predictor, asked);
  };
  EXPECT_EQ(chosen("energy", ""), "energy");
  EXPECT_EQ(chosen("energy", "time"), "time");
  EXPECT_EQ(chosen("energy * time", ""), "time") << "not modelled";
}

TEST_F(PredictionTest, RecommendsNoValueThatNeverWorked) {
  Predictor::Known known = sample(150, 0);
  const auto a = [&](ConfigurationIndex index) { return space.configuration(index)[0]; };
  for (auto& [index, values] : known)
    if (a(index) == Value(4)) values.clear();  // where the least times are
  for (const Prediction& one : Predictor(space, known).best("time", 20)) EXPECT_NE(a(one.index), Value(4));
}

TEST_F(PredictionTest, TheLargestOfAMetricThatIsMaximised) {
  Predictor::Known known = sample(150, 0);
  for (auto& [index, values] : known) values["rate"] = 1 / values["time"];
  const PredictedSession session{"p", "d", "measured", "rate", grid(), known, "1/s", true};
  const Predictor predictor(space, known);
  const std::vector<Prediction> by_time = predictor.best("time", 3);
  const std::vector<Prediction> best = chosen_predictions(session, predictor, {{}, "", 3});
  ASSERT_EQ(best.size(), 3u);
  EXPECT_GT(best[0].values.at("rate").value, 0.8 / by_time[0].values.at("time").value);
  EXPECT_GE(best[0].values.at("rate").value, best[2].values.at("rate").value);
}

TEST_F(PredictionTest, AFewValuesAreNoModel) { EXPECT_TRUE(Predictor(space, sample(9, 0)).models().empty()); }

}  // namespace
}  // namespace ergotune
