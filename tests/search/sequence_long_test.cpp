// The same of searches that last, of batches that come back late, of outcomes that are revised: restarts,
// schedules that end, windows that are full, spaces that are used up.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <map>

#include "fixtures.hpp"
#include "sequences.hpp"

namespace ergotune {
namespace {

using namespace search_tests;

SearchSpace grid(int width, int height, int depth, const std::vector<Restriction>& restrictions = {}) {
  std::vector<Value> columns, rows, layers;
  for (int i = 1; i <= width; ++i) columns.push_back(i);
  for (int i = 0; i < height; ++i) rows.push_back(i);
  for (int i = 0; i < depth; ++i) layers.push_back(3 * i - 4);
  return SearchSpace::build({parameter("x", columns), parameter("y", rows), parameter("z", layers)},
                            restrictions);
}

/// Steps, so that many are equal; every eleventh or so fails.
Outcome outcome_in_grid(const SearchSpace& space, ConfigurationIndex index, std::size_t objectives) {
  const Configuration c = space.configuration(index);
  const std::int64_t x = c[0].as_integer(), y = c[1].as_integer(), z = c[2].as_integer();
  if ((3 * x + y + z + 40) % 11 == 0) return {};
  Outcome outcome = success(static_cast<double>(5 + 3 * std::abs(x - 14) + 2 * std::abs(y - 4) +
                                                4 * ((x * y) % 5) + std::abs(z - 5)));
  if (objectives > 1) outcome.values.push_back(static_cast<double>(40 - x + y));
  if (objectives > 2) outcome.values.push_back(static_cast<double>(3 + (x + 2 * y + z + 9) % 23));
  return outcome;
}

/// How a search goes.
struct Course {
  std::size_t count = 0, batch = 1;
  bool late = false;        ///< the newest of a batch is told first, so that the oldest stay under way
  std::size_t revised = 0;  ///< after so many, all that was told is told anew
  double seconds = 0;       ///< that an evaluation takes
  double turned = 1;        ///< -1: what is to be maximised
};

std::uint64_t search(const std::string& name, const StrategyContext& context, const Course& course) {
  const auto strategy = make_strategy(name, context);
  std::uint64_t hash = 0;
  const auto add = [&](std::uint64_t number) { hash = (hash ^ number) * kPrime; };
  const auto tell = [&](ConfigurationIndex index, double factor) {
    Outcome outcome = outcome_in_grid(*context.space, index, context.objectives);
    outcome.seconds = course.seconds;
    for (double& value : outcome.values) value *= course.turned * factor;
    strategy->tell(index, outcome);
  };
  std::deque<ConfigurationIndex> under_way;
  std::vector<ConfigurationIndex> told;
  while (told.size() < course.count) {
    for (const ConfigurationIndex index : strategy->ask(course.batch - under_way.size())) {
      add(index);
      under_way.push_back(index);
    }
    if (under_way.empty()) break;
    const ConfigurationIndex next = course.late ? under_way.back() : under_way.front();
    course.late ? under_way.pop_back() : under_way.pop_front();
    tell(next, 1);
    told.push_back(next);
    if (course.revised == 0 || told.size() % course.revised != 0) continue;
    for (const ConfigurationIndex index : told)
      tell(index, 1 + static_cast<double>((index + told.size()) % 3));
  }
  if (const auto prospect = strategy->prospect())
    add(static_cast<std::uint64_t>(std::lround(1000 * *prospect)));
  for (const char c : strategy->explanation()) add(static_cast<unsigned char>(c));
  return hash;
}

/// Those that make a model of what they saw, or may ask one that does, take longer.
bool has_model(const StrategyDescription& strategy) {
  return strategy.name == "auto" || strategy.name.starts_with("bayesian");
}

std::uint64_t long_sequences(const StrategyDescription& strategy) {
  static const SearchSpace broad = grid(24, 20, 9, {restriction("(x + y) % 7 != 3")}), small = grid(6, 5, 1),
                           square = grid(14, 12, 1);
  StrategyContext context;
  context.space = &broad;
  context.seed = 11;
  std::uint64_t all = 0;
  const auto add = [&](const Course& course) {
    all = (all ^ search(strategy.name, context, course)) * kPrime;
  };
  const bool model = has_model(strategy);
  add({.count = model ? 60u : 1200u});
  add({.count = model ? 60u : 300u, .batch = 6, .late = true});
  add({.count = model ? 40u : 120u, .batch = 2, .revised = 20});
  add({.count = 80, .batch = 5, .seconds = 1e-5});
  if (strategy.name == "bayesian") add({.count = 600, .seconds = 1e-6});  // most of it without the model
  add({.count = 40, .turned = -1});
  for (const std::uint64_t budget : {7, 33, 110}) {
    context.budget = budget;
    add({.count = model ? 20u : 150u});
  }
  context.budget = 0;
  for (const std::size_t objectives : {2, 3}) {
    context.objectives = objectives;
    add({.count = model ? 30u : 150u, .batch = 3});
  }
  context.objectives = 1;
  for (ConfigurationIndex i = 0; i < broad.size(); i += 50)
    context.known.emplace_back(i, outcome_in_grid(broad, i, 1));
  add({.count = 30, .batch = 4, .late = true});
  context.known.clear();
  for (ConfigurationIndex i = 0; i < broad.size(); i += 7) {
    context.priors.resize(1);
    Outcome outcome = outcome_in_grid(broad, i, 1);
    for (double& value : outcome.values) value *= -1;
    context.priors.front().outcomes.emplace_back(i, outcome);
  }
  add({.count = 20, .turned = -1});
  context.priors.clear();
  for (const auto& option : strategy.options) {
    if (option.name == "population") {
      context.options = {{option.name, 2}};  // fewer than there can be
      add({.count = 60});
      context.options.clear();
    }
    if (option.candidates.empty() && option.default_value.is_integer()) context.options[option.name] = 15;
    for (const Value& candidate : option.candidates) {
      if (model) break;
      context.options = {{option.name, candidate}};
      add({.count = 150, .batch = 2});
      context.options.clear();
    }
  }
  add({.count = 45, .batch = 6, .late = true});
  context.options.clear();
  context.space = &small;
  add({.count = 40, .batch = 3});
  context.space = &square;
  add({.count = strategy.name == "bayesian_forest" ? 40u : 400u});
  return all;
}

TEST(Sequences, OfLongSearchesAreThoseOfEarlierReleasesToo) {
  const std::map<std::string, std::uint64_t> expected{
      {"auto", 0x169dc6e497307bb3},
      {"brute_force", 0xc647e4de52df0556},
      {"random", 0x26aa5289d4733503},
      {"latin_hypercube", 0xe3343aa100daaff5},
      {"low_discrepancy", 0x4cc3a431851dc685},
      {"hill_climbing", 0x7da35baab663d7dc},
      {"multi_start_local_search", 0xf3f4b7132dac9c08},
      {"iterated_local_search", 0xff22579b43f982ab},
      {"variable_neighbourhood", 0xb8eba549387dd5b9},
      {"basin_hopping", 0xadbf391082b30cf1},
      {"tabu", 0x7f1e70af462f7727},
      {"simulated_annealing", 0x4babb33d001feb5a},
      {"threshold_accepting", 0xc1f4b052a6dd185a},
      {"dual_annealing", 0xcd144dc6ac7a754e},
      {"differential_evolution", 0xc5164d34157cead4},
      {"particle_swarm", 0xe88a263b8ee053c4},
      {"firefly", 0xef938e064319ab74},
      {"grey_wolf", 0xbeee6ca97524a8c0},
      {"genetic", 0xe56b89120151bee3},
      {"estimation_of_distribution", 0xf73e52c547523db7},
      {"cma_es", 0x3da964b0e30b7b85},
      {"bayesian", 0xe45128a3f5409983},
      {"bayesian_forest", 0x43ea8505ac37db5c},
      {"bandit", 0x0b03786808febb0b},
      {"nsga2", 0xd01f93d621ce8fe7},
      {"bayesian_pareto", 0x6fffa25d491c2397},
      {"coordinate", 0xc5ebfa66be298edd},
  };
  expect_sequences(expected, long_sequences);
}

}  // namespace
}  // namespace ergotune
