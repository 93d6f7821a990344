// "The same sequence for the same seed and tells" holds from one release to the next too: who resumes a
// session, or repeats a published search, gets the configurations of then. A change that alters a line here
// says so in CHANGELOG.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "fixtures.hpp"
#include "sequences.hpp"

namespace ergotune {
namespace {

using namespace search_tests;

/// What a search meets: all goes well; a third fails; two objectives; something known, something from
/// elsewhere; equal values.
enum class Meets { success, failures, two_objectives, past, plateaus };

Outcome outcome_of(const SearchSpace& space, ConfigurationIndex index, Meets meets) {
  double value = landscape(space, index);
  if (meets == Meets::failures && index % 3 == 1) return {};
  if (meets == Meets::plateaus) value = std::ceil(value * 500);
  Outcome outcome = success(value);
  if (meets == Meets::two_objectives) outcome.values.push_back(1e-3 * static_cast<double>(index % 17 + 1));
  return outcome;
}

std::uint64_t meeting(Meets meets, const std::string& name, const StrategyContext& context, std::size_t count, std::size_t batch) {
  return sequence(name, context, [&](auto index) { return outcome_of(*context.space, index, meets); }, count, batch);
}

StrategyContext context_of(const SearchSpace& space, Meets meets) {
  StrategyContext context;
  context.space = &space;
  context.seed = 5;
  context.objectives = meets == Meets::two_objectives ? 2 : 1;
  if (meets != Meets::past) return context;
  context.budget = 60;
  context.priors.push_back({"another device", {}});
  for (ConfigurationIndex i = 0; i < space.size(); i += 3)
    context.priors.front().outcomes.emplace_back(
        i, success(2 * landscape(space, i) * (1 + 0.05 * static_cast<double>(i % 7))));
  for (ConfigurationIndex i = 0; i < space.size(); i += 40)
    context.known.emplace_back(i, outcome_of(space, i, meets));
  return context;
}

/// One number for all that a strategy is tried on.
std::uint64_t sequences(const StrategyDescription& strategy) {
  const SearchSpace space = restricted_space();
  std::uint64_t all = 0;
  const auto add = [&](std::uint64_t one) { all = (all ^ one) * kPrime; };
  for (const Meets meets :
       {Meets::success, Meets::failures, Meets::two_objectives, Meets::past, Meets::plateaus})
    add(meeting(meets, strategy.name, context_of(space, meets), 60, 1));
  add(meeting(Meets::failures, strategy.name, context_of(space, Meets::failures), 60, 5));
  for (const auto& option : strategy.options)
    for (const Value& candidate : option.candidates) {
      StrategyContext context = context_of(space, Meets::success);
      context.options[option.name] = candidate;
      add(meeting(Meets::success, strategy.name, context, 40, 2));
    }
  return all;
}

TEST(Sequences, OfASeedAreThoseOfEarlierReleases) {
  const std::map<std::string, std::uint64_t> expected{
      {"auto", 0x4601b46b643f92b4},
      {"brute_force", 0x304c2e4c4da3af10},
      {"random", 0xd62cedccf703026a},
      {"latin_hypercube", 0xb73ed233e004c0be},
      {"low_discrepancy", 0xcbb2c55d78f48250},
      {"hill_climbing", 0xe3ac62e0d3a67393},
      {"multi_start_local_search", 0x12b5e967cf0a40d5},
      {"iterated_local_search", 0xcba5adff05c1e87d},
      {"variable_neighbourhood", 0xb1e7498db1d5f840},
      {"basin_hopping", 0x811f993686e4f067},
      {"tabu", 0x31fb0286ba8dd71f},
      {"simulated_annealing", 0x8d76b6a27c3b1bc3},
      {"threshold_accepting", 0x8d06384debdad805},
      {"dual_annealing", 0x5b9983599eeda33f},
      {"differential_evolution", 0x469047d7f33e4045},
      {"particle_swarm", 0xa15dc40a23346638},
      {"firefly", 0x45cdbd1efcc929bc},
      {"grey_wolf", 0xb5525254dd86ce1b},
      {"genetic", 0x12f1b6f646b7d763},
      {"estimation_of_distribution", 0x53607342358a97a0},
      {"cma_es", 0x7587c5f58a85bd20},
      {"bayesian", 0xd40511a5de7244c9},
      {"bayesian_forest", 0xbc41b2644417468d},
      {"bandit", 0x994f6b84a323ef41},
      {"nsga2", 0x70b771851d3e0c87},
      {"bayesian_pareto", 0xa734c4487c53415c},
      {"coordinate", 0xfbb1fce2c9613629},
  };
  expect_sequences(expected, sequences);
}

/// Millions of configurations, too many to be looked at or remembered whole; parameters of every kind.
SearchSpace wide_space() {
  std::vector<Value> widths, clocks, tiles;
  for (int i = 1; i <= 32; ++i) widths.push_back(16 * i);
  for (int i = 0; i < 20; ++i) clocks.push_back(600 + 45 * i);
  for (int i = 1; i <= 8; ++i) tiles.push_back(i);
  Parameter clock = parameter("core_clock_mhz", clocks);
  clock.kind = ParameterKind::core_clock_mhz;
  return SearchSpace::build(
      {parameter("block_size_x", widths), parameter("block_size_y", {1, 2, 3, 4, 6, 8, 16, 32}), parameter("tile", tiles),
       parameter("share", {0.125, 0.25, 0.5, 1.0}), parameter("layout", {"rows", "columns", "tiles"}),
       parameter("vector", {1, 2, 4}), parameter("unroll", {0, 1, 2, 3, 5, 8, 13}), parameter("cached", {false, true}), clock},
      {restriction("block_size_x * block_size_y <= 1024")});
}

Outcome outcome_in_wide_space(const SearchSpace& space, ConfigurationIndex index) {
  const Configuration c = space.configuration(index);
  const double threads = std::log2(c[0].as_real() * c[1].as_real()), tile = c[2].as_real(), clock = c[8].as_real() / 1000;
  if (tile * c[5].as_real() > 24) return {};
  const double shape = std::abs(threads - 7.6) + 0.2 * std::abs(tile - 5) + std::abs(c[3].as_real() - 0.5) +
                       0.3 * std::abs(c[6].as_real() - 3) + (c[4].as_string() == "columns" ? 0.5 : 0) + 0.4 * clock;
  Outcome outcome = success(1e-3 * std::exp(0.4 * shape) / clock);
  outcome.values.push_back(outcome.values.front() * (40 + 60 * clock * clock));
  return outcome;
}

/// Hardly any change of one parameter alone is allowed.
SearchSpace tight_space() {
  std::vector<Value> values;
  for (int i = 0; i < 40; ++i) values.push_back(i);
  return SearchSpace::build({parameter("x", values), parameter("y", values), parameter("z", values)},
                            {restriction("abs(x - y) <= 1"), restriction("abs(y - z) <= 1")});
}

/// One number for a search of a wide space, at length, in haste, for two objectives and with few candidates, for one along a
/// line and for one in a narrow place.
std::uint64_t sequences_afar(const StrategyDescription& strategy) {
  static const SearchSpace wide = wide_space();
  const SearchSpace line = line_space(90), tight = tight_space();
  StrategyContext context;
  context.space = &wide;
  std::uint64_t all = 0;
  const auto add = [&](double seconds, std::size_t count, std::size_t batch) {
    const auto answer = [&](ConfigurationIndex index) {
      Outcome outcome = context.space == &wide ? outcome_in_wide_space(wide, index)
                                               : success(std::abs(static_cast<double>(index) - 30) - 9);
      if (outcome.ok) outcome.values.resize(context.objectives);
      outcome.seconds = seconds;
      return outcome;
    };
    all = (all ^ sequence(strategy.name, context, answer, count, batch)) * kPrime;
  };
  add(0, 16, 1);
  add(1e-3, 120, 1);
  add(0.02, 40, 4);
  context.objectives = 2;
  add(0, 9, 1);
  context.objectives = 1;
  for (const auto& option : strategy.options)
    if (option.candidates.empty() && option.default_value.is_integer()) context.options[option.name] = 40;
  add(0, 60, 1);
  context.space = &line;
  add(0, 60, 1);
  context.options.clear();
  context.budget = 30;
  add(0, 60, 2);
  context.space = &tight;
  add(0, 60, 1);
  // what it is tuned over, too
  for (const auto& option : strategy.options) {
    std::string texts = fmt::format("{}={}", option.name, option.default_value.to_literal());
    for (const Value& candidate : option.candidates) texts += "," + candidate.to_literal();
    for (const char c : texts) all = (all ^ static_cast<unsigned char>(c)) * kPrime;
  }
  return all;
}

TEST(Sequences, OfLargeSpacesAreThoseOfEarlierReleasesToo) {
  const std::map<std::string, std::uint64_t> expected{
      {"auto", 0x7baa4a5ad80993c7},
      {"brute_force", 0x92fc7d55909bbd36},
      {"random", 0x3562f5355d1155e0},
      {"latin_hypercube", 0x60d61db027c99ac2},
      {"low_discrepancy", 0x2fe6262914815196},
      {"hill_climbing", 0xe5fbc674a39638fb},
      {"multi_start_local_search", 0x18233f18567f4378},
      {"iterated_local_search", 0x3cfc4de859fc2503},
      {"variable_neighbourhood", 0xe2c69e6d8934f0be},
      {"basin_hopping", 0x6f94f866f549d70e},
      {"tabu", 0xc825c2eded0d2976},
      {"simulated_annealing", 0x83ec2c8b4c52ce74},
      {"threshold_accepting", 0x29ec4e67d9343da1},
      {"dual_annealing", 0xd7e990139600a76c},
      {"differential_evolution", 0xc2f069449d651e58},
      {"particle_swarm", 0x75ca603e8179f9af},
      {"firefly", 0x64ef73ac76b64cb0},
      {"grey_wolf", 0x04376acd688e3cad},
      {"genetic", 0x3ad6482aa40cadcf},
      {"estimation_of_distribution", 0x202cc65b6252713d},
      {"cma_es", 0x03f0a561d26202d5},
      {"bayesian", 0x9c1a11cbd75fddea},
      {"bayesian_forest", 0xd9aac4cb437825ca},
      {"bandit", 0x5e4ba22cb8b62100},
      {"nsga2", 0x45473a76f285f9c4},
      {"bayesian_pareto", 0xca0f1e6081d6cfb7},
      {"coordinate", 0x7b6a68864c457260},
  };
  expect_sequences(expected, sequences_afar);
}

}  // namespace
}  // namespace ergotune
