// The state of a SearchSpace, shared by the files that implement it.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "ergotune/space.hpp"
#include "space/build/builder.hpp"

namespace ergotune {

struct SearchSpace::State {
  // as given to build(), for explain() and why_empty()
  std::vector<Parameter> given_parameters;
  std::vector<Restriction> restrictions;
  SpaceOptions options;

  BuiltSpace built;
  std::uint64_t size = 0;
  double seconds = 0;
  /// By parameter: index of its chain, and its level within the chain.
  std::vector<std::uint32_t> chain_of, level_of;
  /// By parameter: positions of its values, for lookup by value.
  std::vector<std::map<Value, std::uint32_t>> position_of;
  std::map<std::string, std::uint32_t, std::less<>> index_of_name;

  /// If materialised: rows of positions, `value_width` bytes per position.
  std::vector<std::uint8_t> table;
  std::size_t value_width = 0;

  void finish();
  void materialise();
  bool single() const { return built.chains.size() == 1; }
};

/// State of a walk through all chains: the node in each chain, and the number of remaining configurations.
class SpaceCursor {
 public:
  SpaceCursor(const std::vector<Diagram>& chains, std::uint64_t size) : open_(size) {
    if (chains.size() > inline_.size()) heap_.resize(chains.size());
    for (std::size_t c = 0; c < chains.size(); ++c) node(c) = chains[c].root();
  }
  Diagram::Node& node(std::size_t chain) { return heap_.empty() ? inline_[chain] : heap_[chain]; }
  Diagram::Node node(std::size_t chain) const { return heap_.empty() ? inline_[chain] : heap_[chain]; }
  /// Returns the contribution of the other chains: remaining configurations per path from this chain's node, which is
  /// at `level`.
  std::uint64_t others(const Diagram& chain, std::size_t number, std::size_t level) const {
    return open_ / chain.count(level, node(number));
  }
  /// Follows an edge that leads to `level`.
  void step(const Diagram& chain, std::size_t number, std::size_t level, const Diagram::Edge& edge,
            std::uint64_t others) {
    node(number) = edge.child;
    open_ = chain.count(level, edge.child) * others;
  }

 private:
  std::uint64_t open_;
  std::array<Diagram::Node, 16> inline_{};
  std::vector<Diagram::Node> heap_;
};

}  // namespace ergotune
