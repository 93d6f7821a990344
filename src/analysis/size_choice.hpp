// What configurations need at several sizes of a problem: the best for all of them, and a small decision tree that
// chooses by size.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

struct SizedResults {
  std::vector<std::string> names;                         ///< of the constants that are the size
  std::vector<std::vector<double>> sizes;                 ///< of each size: their values
  std::vector<std::vector<std::optional<double>>> value;  ///< [configuration][size], positive, less is better
};

/// Of a choice for each size: what it needs above the best of that size, as a share; the mean and the largest.
struct SizeLoss {
  double mean = 0, worst = 0;
};

struct OverSizes : SizeLoss {
  std::size_t configuration = 0;
};
/// The configuration of the least mean loss, or of the least worst; nullopt where none works at every size.
std::optional<OverSizes> best_over_sizes(const SizedResults& results, bool worst_case);

struct SizeTree : SizeLoss {
  struct Node {
    std::optional<std::size_t> constant;  ///< none: a leaf
    double at_most = 0;                   ///< where its value is no more, `below` goes on, else `above`
    std::size_t below = 0, above = 0;     ///< in `nodes`
    std::size_t configuration = 0;        ///< of a leaf
  };
  std::vector<Node> nodes;  ///< the first is the root
  std::size_t leaves = 0;
  std::size_t choose(const std::vector<double>& size) const;  ///< a configuration
};
/// The tree of least loss with at most `leaves` of them, as few as lower the mean loss by 0.1 % each. A leaf has the
/// best configuration over its sizes. nullopt where a size has no result.
std::optional<SizeTree> size_tree(const SizedResults& results, std::size_t leaves, bool worst_case);

/// The tree as a function `choose_NAME` of the constants: a C++ header, or a Python module. `about` is its comment.
std::string tree_as_cpp(const SizeTree& tree, const SizedResults& results, const std::string& name,
                        const std::vector<Constants>& configurations, const std::string& about);
std::string tree_as_python(const SizeTree& tree, const SizedResults& results, const std::string& name,
                           const std::vector<Constants>& configurations, const std::string& about);

}  // namespace ergotune
