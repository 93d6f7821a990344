// Which configurations a model is asked about: all of them where that is affordable, else a fresh sample
// together with the neighbours of the best.
#pragma once

#include <vector>

#include "search/evaluation_cache.hpp"

namespace ergotune::search {

class Candidates {
 public:
  Candidates(const SearchSpace& space, std::size_t limit) : space_(space), limit_(limit) {}

  /// True when every configuration is a candidate, so that drawing again brings nothing new.
  bool whole() const { return space_.size() <= limit_; }
  /// At most about `limit` of them, known ones left out unless the whole space is a candidate: the neighbours
  /// of the incumbents (best first) and of what else is promising, steps of several parameters from the
  /// incumbents, their crossings, and a sample of everything.
  std::vector<ConfigurationIndex> draw(const EvaluationCache& memory, const std::vector<ConfigurationIndex>& incumbents,
                                       const std::vector<ConfigurationIndex>& promising, Random& random,
                                       std::size_t limit) const;
  std::size_t limit() const { return limit_; }

 private:
  const SearchSpace& space_;
  std::size_t limit_;
};

}  // namespace ergotune::search
