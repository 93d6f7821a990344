// "The same sequence for the same seed and tells" holds from one release to the next too: who resumes a
// session, or repeats a published search, gets the configurations of then. A change that alters a line here
// says so in CHANGELOG.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "fixtures.hpp"

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

/// A hash (FNV-1a) of what is asked for, `batch` at a time.
std::uint64_t sequence(const std::string& name, const StrategyContext& context, Meets meets,
                       std::size_t count, std::size_t batch) {
  const auto strategy = make_strategy(name, context);
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::size_t done = 0; done < count; done += batch) {
    const auto asked = strategy->ask(batch);
    for (const ConfigurationIndex index : asked) {
      hash = (hash ^ index) * 0x100000001b3;
      strategy->tell(index, outcome_of(*context.space, index, meets));
    }
    if (asked.empty()) break;
  }
  return hash;
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
  const auto add = [&](std::uint64_t one) { all = (all ^ one) * 0x100000001b3; };
  for (const Meets meets :
       {Meets::success, Meets::failures, Meets::two_objectives, Meets::past, Meets::plateaus})
    add(sequence(strategy.name, context_of(space, meets), meets, 60, 1));
  add(sequence(strategy.name, context_of(space, Meets::failures), Meets::failures, 60, 5));
  for (const auto& option : strategy.options)
    for (const Value& candidate : option.candidates) {
      StrategyContext context = context_of(space, Meets::success);
      context.options[option.name] = candidate;
      add(sequence(strategy.name, context, Meets::success, 40, 2));
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
  for (const auto& strategy : strategies()) {
    const auto known = expected.find(strategy.name);
    const std::uint64_t found = sequences(strategy);
    EXPECT_TRUE(known != expected.end() && known->second == found)
        << fmt::format("{{\"{}\", 0x{:016x}}},", strategy.name, found);
  }
}

}  // namespace
}  // namespace ergotune
