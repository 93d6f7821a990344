// What a search has learnt of the parameters: which matter, which act together, which values never worked.
#pragma once

#include <cstdint>
#include <vector>

#include "ergotune/search/strategy.hpp"

namespace ergotune {

struct Importance {
  /// One parameter, or two that act together beyond what each does alone.
  struct Share {
    std::vector<std::size_t> parameters;
    double share = 0;  ///< of the variance of the objective's logarithm over the space, as a model of the outcomes has it
  };
  /// A value that was tried often and never worked, while others did.
  struct RuledOut {
    std::size_t parameter = 0, value = 0;  ///< positions
    std::uint64_t tried = 0;
  };
  /// Largest first; what is below 1 % is left out. Empty where too little was measured to tell.
  std::vector<Share> shares;
  std::vector<RuledOut> ruled_out;
};

/// Functional analysis of variance (Hooker, 2007; Hutter, Hoos and Leyton-Brown, 2014) of a Gaussian process over
/// `outcomes`: the variance of its prediction's mean given one parameter, and given two beyond either alone. Outcomes with
/// several values are not told apart here: the first counts.
Importance importance_of(const SearchSpace& space, const std::vector<std::pair<ConfigurationIndex, Outcome>>& outcomes);

}  // namespace ergotune
