#include "analysis/centrality.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "ergotune/random.hpp"

namespace ergotune {
namespace {

SearchSpace grid_space(const std::vector<int>& sizes) {
  std::vector<Parameter> parameters;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Parameter p;
    p.name = "p" + std::to_string(i);
    for (int v = 0; v < sizes[i]; ++v) p.values.push_back(Value(v));
    parameters.push_back(p);
  }
  return SearchSpace::build(parameters, {});
}

/// PageRank by power iteration on a dense matrix, written down from the definition: with probability d along
/// a random edge to a better neighbour (from a node without one: to any node), else to any node.
std::vector<double> power_iteration(const SearchSpace& space, const std::vector<double>& fitness, double d) {
  std::vector<std::size_t> nodes;
  for (std::size_t i = 0; i < fitness.size(); ++i) {
    if (std::isfinite(fitness[i])) nodes.push_back(i);
  }
  const std::size_t n = nodes.size();
  std::vector<std::vector<double>> step(n, std::vector<double>(n, 0.0));
  for (std::size_t a = 0; a < n; ++a) {
    std::vector<std::size_t> better;
    for (std::size_t b = 0; b < n; ++b) {
      const Configuration x = space.configuration(nodes[a]), y = space.configuration(nodes[b]);
      int different = 0;
      for (std::size_t k = 0; k < x.size(); ++k) different += !(x[k] == y[k]);
      if (different == 1 && fitness[nodes[b]] < fitness[nodes[a]]) better.push_back(b);
    }
    for (std::size_t b = 0; b < n; ++b) step[a][b] = better.empty() ? 1.0 / n : 0.0;
    for (const std::size_t b : better) step[a][b] = 1.0 / better.size();
  }
  std::vector<double> rank(n, 1.0 / n);
  for (int i = 0; i < 300; ++i) {
    std::vector<double> next(n, (1 - d) / n);
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) next[b] += d * rank[a] * step[a][b];
    }
    rank = next;
  }
  std::vector<double> out(fitness.size(), 0.0);
  for (std::size_t a = 0; a < n; ++a) out[nodes[a]] = rank[a];
  return out;
}

TEST(Centrality, AgreesWithAnIndependentPowerIteration) {
  Random random(5);
  for (const auto& sizes : {std::vector{7}, std::vector{4, 5}, std::vector{3, 4, 2, 2}}) {
    const SearchSpace space = grid_space(sizes);
    for (int round = 0; round < 5; ++round) {
      std::vector<double> fitness;
      for (std::uint64_t i = 0; i < space.size(); ++i) {
        fitness.push_back(random.chance(0.15) ? std::nan("") : 1.0 + static_cast<double>(random.below(12)));
      }
      const Centrality c = proportion_of_centrality(space, fitness, default_centrality_steps());
      const auto expected = power_iteration(space, fitness, 0.85);
      for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(c.rank[i], expected[i], 1e-10);
    }
  }
}

TEST(Centrality, OneValleyIsEasyAndADeceptiveOneIsHard) {
  // Neighbours one step apart. One valley: every search ends in the optimum.
  const SearchSpace space = grid_space({21});
  std::vector<double> bowl, trap;
  for (int i = 0; i < 21; ++i) {
    bowl.push_back(1 + 0.1 * std::abs(i - 10));
    trap.push_back(i == 0 ? 1.0 : 3.0 - 0.05 * i);  // nearly everything leads away from the optimum at 0
  }
  const auto steps = default_centrality_steps();
  const Centrality easy = proportion_of_centrality(space, bowl, steps, Neighbourhood::strictly_adjacent);
  EXPECT_EQ(easy.minima, 1u);
  EXPECT_DOUBLE_EQ(easy.curve.front().share, 1.0);
  const Centrality hard = proportion_of_centrality(space, trap, steps, Neighbourhood::strictly_adjacent);
  EXPECT_EQ(hard.minima, 2u);
  EXPECT_LT(hard.curve.front().share, 0.5);
  EXPECT_DOUBLE_EQ(hard.curve.back().share, 1.0);  // 2.0 is within twice the optimum
}

TEST(Centrality, TheCurveGrowsAndTheRanksSumToOne) {
  const SearchSpace space = grid_space({8, 8, 8});
  Random random(1);
  std::vector<double> fitness;
  for (std::uint64_t i = 0; i < space.size(); ++i) fitness.push_back(1 + random.uniform());
  const Centrality c = proportion_of_centrality(space, fitness, default_centrality_steps());
  EXPECT_NEAR(std::accumulate(c.rank.begin(), c.rank.end(), 0.0), 1.0, 1e-9);
  EXPECT_GT(c.minima, 1u);
  for (std::size_t i = 1; i < c.curve.size(); ++i) EXPECT_GE(c.curve[i].share, c.curve[i - 1].share);
  EXPECT_GT(c.curve.front().share, 0.0);
}

TEST(Centrality, NothingValidGivesNothing) {
  const SearchSpace space = grid_space({3});
  const Centrality c =
      proportion_of_centrality(space, std::vector<double>(3, std::nan("")), default_centrality_steps());
  EXPECT_EQ(c.configurations, 0u);
  EXPECT_TRUE(c.curve.empty());
}

}  // namespace
}  // namespace ergotune
