// Parameters without effect, and the configurations that differ in nothing else.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune::search {

/// A parameter is presumed idle while configurations that differ in it alone have all had the same value (to
/// a thousandth). To measure what differs from a measured one in such parameters only would teach nothing.
class InactiveParameters {
 public:
  explicit InactiveParameters(const SearchSpace& space);

  /// An outcome; what is known already is passed over.
  void observe(ConfigurationIndex index, bool ok, double value);
  bool idle(std::size_t parameter) const { return equal_[parameter] > 0 && different_[parameter] == 0; }
  /// True when it differs from an observed one in idle parameters only.
  bool twin(ConfigurationIndex index);

 private:
  using Key = std::uint64_t;
  Key key(const std::uint32_t* positions) const;

  const SearchSpace& space_;
  std::vector<std::uint32_t> positions_, scratch_;  ///< of the observed, dimensions() each
  std::vector<double> values_;                      ///< infinity for a failure
  std::unordered_set<ConfigurationIndex> known_;
  std::vector<std::size_t> equal_, different_;
  std::vector<bool> idle_;
  std::unordered_set<Key> keys_;
};

}  // namespace ergotune::search
