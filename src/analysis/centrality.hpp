// Difficulty of a space for local search: the proportion of centrality (Schoonhoven et al. 2022; Going Green, Section
// V-B). In the fitness flow graph, edges lead from each configuration to its better neighbours. A random walk on it is
// a randomised first-improvement local search, and the PageRank of a local minimum is the frequency with which such a
// search ends there.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "analysis/tradeoff.hpp"
#include "ergotune/space.hpp"

namespace ergotune {

struct CentralityPoint {
  double p = 1;      ///< minima within p times the optimum
  double share = 0;  ///< share of the centrality of all minima
};

struct Centrality {
  std::size_t configurations = 0;  ///< valid ones, which are the nodes of the graph
  std::size_t minima = 0;
  double optimum = 0;
  std::vector<CentralityPoint> curve;
  /// PageRank by index in the space; 0 for failed configurations. The sum is 1.
  std::vector<double> rank;
};

/// `fitness`: by index in the space, positive, smaller is better; NaN for failed configurations, which are not nodes.
/// `steps`: the values of p. PageRank has the usual damping; walks that end in a minimum restart at a random node.
Centrality proportion_of_centrality(const SearchSpace& space, std::span<const double> fitness,
                                    std::span<const double> steps, Neighbourhood neighbourhood = Neighbourhood::hamming,
                                    double damping = 0.85);

struct NamedCentrality {
  std::string name;  ///< "time" or "energy"
  Centrality centrality;
};

/// For time, and for energy if it was recorded, over the recorded configurations. Configurations that were not recorded
/// are not nodes, even if restrictions allow them, so that neither restrictions nor the device are needed.
std::vector<NamedCentrality> centralities(const Recording& recording, const Tradeoff& tradeoff,
                                          Neighbourhood neighbourhood = Neighbourhood::hamming);

/// 1, 1.01 ... 1.1, 1.15 ... 1.5, 1.75, 2.
std::vector<double> default_centrality_steps();

}  // namespace ergotune
