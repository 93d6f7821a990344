// Detects parameters without effect, and configurations that differ only in these.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune::search {

/// A parameter is presumed inactive while all configurations that differ in it alone have the same value (to a
/// thousandth). Measuring a configuration that differs from a measured one only in such parameters would add no
/// information.
class InactiveParameters {
 public:
  explicit InactiveParameters(const SearchSpace& space);

  /// Adds an outcome; known configurations are ignored.
  void observe(ConfigurationIndex index, bool ok, double value);
  bool idle(std::size_t parameter) const { return equal_[parameter] > 0 && different_[parameter] == 0; }
  /// Whether a configuration differs from an observed one in inactive parameters only.
  bool twin(ConfigurationIndex index);

 private:
  using Key = std::uint64_t;
  Key key(const std::uint32_t* positions) const;

  const SearchSpace& space_;
  std::vector<std::uint32_t> positions_, scratch_;  ///< of the observed configurations, dimensions() each
  std::vector<double> values_;                      ///< infinity: failure
  std::unordered_set<ConfigurationIndex> known_;
  std::vector<std::size_t> equal_, different_;
  std::vector<bool> idle_;
  std::unordered_set<Key> keys_;
};

}  // namespace ergotune::search
