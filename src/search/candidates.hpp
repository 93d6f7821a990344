// Which configurations a model is asked about: all of them where that is affordable, else a fresh sample
// together with the neighbours of the best.
#pragma once

#include <vector>

#include "search/memory.hpp"

namespace ergotune::search {

class Candidates {
 public:
  Candidates(const SearchSpace& space, std::size_t limit) : space_(space), limit_(limit) {}

  /// True when every configuration is a candidate, so that drawing again brings nothing new.
  bool whole() const { return space_.size() <= limit_; }
  /// At most about `limit` of them, known ones left out unless the whole space is a candidate.
  std::vector<ConfigurationIndex> draw(const Memory& memory,
                                       const std::vector<ConfigurationIndex>& incumbents, Random& random,
                                       std::size_t limit) const;
  std::size_t limit() const { return limit_; }

 private:
  const SearchSpace& space_;
  std::size_t limit_;
};

}  // namespace ergotune::search
