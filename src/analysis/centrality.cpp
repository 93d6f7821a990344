#include "analysis/centrality.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ergotune {

std::vector<double> default_centrality_steps() {
  std::vector<double> steps;
  for (int i = 0; i <= 10; ++i) steps.push_back(1.0 + 0.01 * i);
  for (int i = 3; i <= 10; ++i) steps.push_back(1.0 + 0.05 * i);
  steps.push_back(1.75);
  steps.push_back(2.0);
  return steps;
}

Centrality proportion_of_centrality(const SearchSpace& space, std::span<const double> fitness,
                                    std::span<const double> steps, Neighbourhood neighbourhood, double damping) {
  Centrality result;
  result.rank.assign(space.size(), 0.0);
  std::vector<ConfigurationIndex> order;
  for (ConfigurationIndex i = 0; i < space.size(); ++i) {
    if (std::isfinite(fitness[i])) order.push_back(i);
  }
  result.configurations = order.size();
  if (order.empty()) return result;
  std::ranges::stable_sort(order, [&](auto a, auto b) { return fitness[a] > fitness[b]; });
  result.optimum = fitness[order.back()];

  // Edges lead to strictly better neighbours only, so the graph has no cycles. With restarts, the PageRank x satisfies
  //   x_i = s + d * sum over j -> i of x_j / out_j,
  // where s (teleport and walks that ended) is equal for all nodes: x is proportional to the solution for s = 1, which
  // a single pass from the worst to the best node computes exactly.
  std::vector<ConfigurationIndex> neighbours, better;
  std::vector<ConfigurationIndex> minima;
  for (const ConfigurationIndex i : order) result.rank[i] = 1.0;
  for (const ConfigurationIndex i : order) {
    space.neighbours(i, neighbourhood, neighbours);
    better.clear();
    for (const ConfigurationIndex n : neighbours) {
      if (fitness[n] < fitness[i]) better.push_back(n);
    }
    if (better.empty()) {
      minima.push_back(i);
      continue;
    }
    const double flow = damping * result.rank[i] / static_cast<double>(better.size());
    for (const ConfigurationIndex n : better) result.rank[n] += flow;
  }
  const double total = std::accumulate(result.rank.begin(), result.rank.end(), 0.0);
  for (double& x : result.rank) x /= total;

  result.minima = minima.size();
  double all = 0;
  for (const ConfigurationIndex i : minima) all += result.rank[i];
  for (const double p : steps) {
    double good = 0;
    for (const ConfigurationIndex i : minima) {
      if (fitness[i] <= p * result.optimum * (1 + 1e-12)) good += result.rank[i];
    }
    result.curve.push_back({p, good / all});
  }
  return result;
}

std::vector<NamedCentrality> centralities(const Recording& recording, const Tradeoff& tradeoff,
                                          Neighbourhood neighbourhood) {
  std::vector<Configuration> configurations;
  configurations.reserve(tradeoff.points.size());
  for (const TradeoffPoint& point : tradeoff.points) configurations.push_back(recording.configuration(point.row));
  const SearchSpace space = SearchSpace::from_configurations(recording.parameters, configurations);
  std::vector<double> time(space.size(), std::nan("")), energy = time;
  for (const TradeoffPoint& point : tradeoff.points) {
    if (const auto index = space.index_of(recording.position(point.row))) {
      time[*index] = point.time;
      energy[*index] = point.energy;
    }
  }
  const auto steps = default_centrality_steps();
  std::vector<NamedCentrality> out;
  out.push_back({"time", proportion_of_centrality(space, time, steps, neighbourhood)});
  if (tradeoff.has_energy) out.push_back({"energy", proportion_of_centrality(space, energy, steps, neighbourhood)});
  return out;
}

}  // namespace ergotune
