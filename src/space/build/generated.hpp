// Parameters whose values depend on others: ranges and generators, worked out over all that they can depend
// on.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

/// A generator tabulated by what it reads. It is run once for each combination of values that it can tell
/// apart: its look-ups are watched, so that a generator that reads one of ten parameters is run once per
/// value of that one.
class TabulatedGenerator {
 public:
  /// Runs `generator` over the parameters before `count`, whose value lists must be known. Throws UserError
  /// when it reads too much.
  TabulatedGenerator(const Parameter& parameter, const ValueGenerator& generator, const std::vector<Parameter>& all,
                     std::uint32_t count, const Constants& constants);

  /// The parameters it reads, ascending.
  const std::vector<std::uint32_t>& reads() const { return reads_; }
  /// Every value it can give, sorted.
  const std::vector<Value>& values() const { return values_; }
  /// The lists it can give, as ascending positions in values().
  const std::vector<std::vector<std::uint32_t>>& lists() const { return lists_; }
  /// Which list it gives; positions of the values of reads().
  std::uint32_t list_for(const std::int64_t* positions) const;

 private:
  struct Node {
    std::uint32_t parameter = 0;      // read here
    std::vector<std::int32_t> child;  // by position; a list is stored as -1 - its number
  };
  std::vector<Node> nodes_;
  std::int32_t root_ = 0;
  std::vector<std::uint32_t> reads_;
  std::vector<std::uint32_t> place_of_;  // of a parameter in reads_
  std::vector<Value> values_;
  std::vector<std::vector<std::uint32_t>> lists_;
};

/// Every value a dependent range can give over all values of the parameters it names, sorted.
std::vector<Value> range_values(const Parameter& parameter, const std::vector<Parameter>& all, std::uint32_t count,
                                const Constants& constants);

/// The range as a generator, for ranges that cannot be compiled.
ValueGenerator as_generator(const Parameter& parameter);

}  // namespace ergotune
