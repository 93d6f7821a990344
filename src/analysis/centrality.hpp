// How hard a space is for local search: the proportion of centrality (Schoonhoven et al. 2022; Going Green,
// Section V-B). In the fitness flow graph every configuration points to its better neighbours; a random walk
// on it is a randomised first-improvement local search, and the PageRank of a local minimum is how often such
// a search ends there.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "analysis/tradeoff.hpp"
#include "ergotune/space.hpp"

namespace ergotune {

struct CentralityPoint {
  double p = 1;      ///< within p times the optimum
  double share = 0;  ///< of the minima's centrality that lies there
};

struct Centrality {
  std::size_t configurations = 0;  ///< valid ones: the graph's nodes
  std::size_t minima = 0;
  double optimum = 0;
  std::vector<CentralityPoint> curve;
  /// PageRank by index of the space; 0 for failed configurations. Sums to 1.
  std::vector<double> rank;
};

/// `fitness` by index of the space, to be minimised and positive; NaN for failed configurations, which are no
/// nodes. `steps` are the values of p. PageRank with the usual damping; walks that end in a minimum begin
/// anew anywhere.
Centrality proportion_of_centrality(const SearchSpace& space, std::span<const double> fitness,
                                    std::span<const double> steps, Neighbourhood neighbourhood = Neighbourhood::hamming,
                                    double damping = 0.85);

struct NamedCentrality {
  std::string name;  ///< "time" or "energy"
  Centrality centrality;
};

/// Of time, and of energy where it was recorded, over the recorded configurations: what was not recorded is no
/// node of the graph, whatever the restrictions would allow, so that neither they nor the device are needed.
std::vector<NamedCentrality> centralities(const Recording& recording, const Tradeoff& tradeoff,
                                          Neighbourhood neighbourhood = Neighbourhood::hamming);

/// 1, 1.01 ... 1.1, 1.15 ... 1.5, 1.75, 2.
std::vector<double> default_centrality_steps();

}  // namespace ergotune
