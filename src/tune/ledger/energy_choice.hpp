// Which configuration's energy to measure next, where the times of many and the energies of few are known.
#pragma once

#include <span>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

struct TimedConfiguration {
  ConfigurationIndex index = 0;
  double time = 0;    ///< s; more than 0
  double energy = 0;  ///< J; 0: not measured
};

/// Candidates, those first from which the largest improvement on the least energy is expected (Jones et al., Journal of
/// Global Optimization 13, 1998, Eq. 15). The logarithm of the power is modelled as a Gaussian process of the logarithm
/// of the time and of the parameters, with scales that are not fitted: few energies would not determine them. Returns
/// the candidates as they are while too few energies are known.
std::vector<ConfigurationIndex> by_expected_improvement(const SearchSpace& space,
                                                        std::span<const TimedConfiguration> measured,
                                                        std::span<const TimedConfiguration> candidates);

}  // namespace ergotune
