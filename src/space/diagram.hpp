// The compact form of a search space: a decision diagram with counts. A path from the root to the end is a
// configuration; parts that are alike are stored once, so that 10^12 configurations fit into megabytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ergotune {

/// What the builder finds for one component (parameters tied together by restrictions): layer l holds the
/// states that prefixes of l values can be in, and for each the values that lead on. State 0 of layer 0 is
/// the start; the edges of the last layer lead to state 0, the end.
struct Layer {
  std::vector<std::uint32_t> first_edge;  ///< of each state, and one past the last
  std::vector<std::uint32_t>
      position;                     ///< of each edge: the value's position in its parameter's list, ascending
  std::vector<std::uint32_t> next;  ///< of each edge: the state in the next layer
  std::size_t states() const { return first_edge.empty() ? 0 : first_edge.size() - 1; }
};
using Layers = std::vector<Layer>;

/// Decision diagram of a run of parameters. Nodes and edges are numbered; node 0 is the end.
class Diagram {
 public:
  using Node = std::uint32_t;
  static constexpr Node kEnd = 0;

  Diagram() : first_edge_{0, 0}, count_{1} {}

  /// Puts a component in front of what is there: its layers with dead ends taken out and equal nodes merged.
  /// `parameters`: their positions, ascending, all before those already in the diagram. False when a count
  /// exceeds 2^63; approximate_size() holds in any case.
  bool prepend(const std::vector<std::uint32_t>& parameters, const Layers& layers);

  bool empty() const { return empty_; }
  Node root() const { return root_; }
  /// Number of ways from a node to the end.
  std::uint64_t count(Node node) const { return count_[node]; }
  std::uint64_t size() const { return empty_ ? 0 : count_[root_]; }
  double approximate_size() const { return approximate_size_; }
  /// Positions of the parameters, level by level.
  const std::vector<std::uint32_t>& parameters() const { return parameters_; }

  struct Edge {
    std::uint64_t before;    ///< ways through the node's earlier edges
    std::uint32_t position;  ///< of the value in its parameter's list
    Node child;
  };
  const Edge* begin(Node node) const { return edges_.data() + first_edge_[node]; }
  const Edge* end(Node node) const { return edges_.data() + first_edge_[node + 1]; }

  /// The edge through which the index-th way from `node` leads; index < count(node).
  const Edge* edge_at(Node node, std::uint64_t index) const {
    const Edge* first = begin(node);
    const Edge* last = end(node);
    while (last - first > 8) {
      const Edge* middle = first + (last - first) / 2;
      (middle->before <= index ? first : last) = middle;
    }
    while (last - first > 1 && (last - 1)->before > index) --last;
    return last - 1;
  }
  /// The edge of a value, or nullptr.
  const Edge* edge_of(Node node, std::uint32_t position) const {
    const Edge* first = begin(node);
    const Edge* last = end(node);
    // most nodes have all values or all from the first on
    if (position < static_cast<std::uint32_t>(last - first) && first[position].position == position)
      return first + position;
    while (last - first > 8) {
      const Edge* middle = first + (last - first) / 2;
      (middle->position <= position ? first : last) = middle;
    }
    for (; first != last; ++first)
      if (first->position == position) return first;
    return nullptr;
  }

  std::size_t nodes() const { return count_.size(); }
  std::size_t edges() const { return edges_.size(); }
  std::size_t memory_bytes() const;
  void shrink();

 private:
  std::vector<std::uint32_t> first_edge_;  // nodes + 1
  std::vector<Edge> edges_;
  std::vector<std::uint64_t> count_;
  std::vector<std::uint32_t> parameters_;
  Node root_ = kEnd;
  bool empty_ = false;
  double approximate_size_ = 1;
};

}  // namespace ergotune
