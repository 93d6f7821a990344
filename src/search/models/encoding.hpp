// A search space as coordinates that a model can learn from.
#pragma once

#include <cstdint>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune::search {

/// One aspect of a parameter, or of several together, as a number per value. Scaled to [0, 1].
struct Feature {
  enum class Kind {
    ordinal,       ///< size of the value, on a log scale where the values span one
    nominal,       ///< texts: equal or not
    divisibility,  ///< exponent of 2 in the value, which matters for vector widths, warps and banks
    product,       ///< of parameters that make up a shape (block_size_x, block_size_y): threads, tile areas
  };
  Kind kind = Kind::ordinal;
  /// The parameters it reads; one, but for products.
  std::vector<std::size_t> parameters;
  /// Per entry of `parameters`: a coordinate per value position. A product adds them up (they are
  /// logarithms).
  std::vector<std::vector<float>> coordinates;

  float at(const std::uint32_t* positions) const {
    float sum = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i) sum += coordinates[i][positions[parameters[i]]];
    return sum;
  }
};

/// Every feature of a space's parameters; parameters with one value have none.
std::vector<Feature> make_features(const SearchSpace& space);

}  // namespace ergotune::search
