// Compact form of a search space: a decision diagram with counts. A path from the root to the end is a configuration;
// equal parts are stored once, so that 10^12 configurations fit into megabytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ergotune {

/// The states that prefixes of l values can have, and the states to which their values lead. States with equal choices
/// share a key: a list of values and, for each value, one of a few slots; each state maps slots to states of the next
/// layer. State 0 of layer 0 is the start; the last layer leads to state 0, the end.
struct Layer {
  std::vector<std::uint32_t> first_choice;  ///< by key, and the total number at the end
  std::vector<std::uint32_t> position;      ///< by choice: position of the value in its parameter's list, ascending
  std::vector<std::uint32_t> slot;          ///< by choice; empty if each choice of a key has its own slot
  std::vector<std::uint32_t> slots;         ///< by key: number of slots
  std::vector<std::uint32_t> key;           ///< by state; empty if each state has its own key
  std::vector<std::uint32_t> next;          ///< by state and slot: the state in the next layer

  std::size_t keys() const { return slots.size(); }
  std::size_t states() const { return key.empty() ? slots.size() : key.size(); }
  std::uint32_t slot_of(std::uint32_t key, std::uint32_t choice) const {
    return slot.empty() ? choice - first_choice[key] : slot[choice];
  }
  std::uint32_t key_of(std::size_t state) const { return key.empty() ? static_cast<std::uint32_t>(state) : key[state]; }
};
using Layers = std::vector<Layer>;

/// Decision diagram of a chain of parameters. Nodes are numbered within their level; level l chooses the value of
/// parameters()[l]; after the last level there is one node, 0, the end.
///
/// A node is stored in one of two forms. Plain: its edges, each with the number of paths through earlier edges. Shaped:
/// a few children, and a shape shared by many nodes that maps values to children.
class Diagram {
 public:
  using Node = std::uint32_t;

  /// An empty chain: one configuration without parameters.
  Diagram() = default;

  /// Inserts a component before the existing levels, with dead ends removed and equal nodes merged. `parameters`: their
  /// indices, ascending, all smaller than those in the diagram. Consumes the layers to save memory.
  void prepend(const std::vector<std::uint32_t>& parameters, Layers&& layers);

  bool empty() const { return empty_; }
  /// Number of configurations; saturates at 2^63.
  std::uint64_t size() const { return empty_ ? 0 : levels_.empty() ? 1 : levels_[0].nodes[root_].count; }
  double approximate_size() const { return approximate_size_; }
  const std::vector<std::uint32_t>& parameters() const { return parameters_; }
  std::size_t depth() const { return levels_.size(); }

  Node root() const { return root_; }
  /// Number of paths from a node to the end.
  std::uint64_t count(std::size_t level, Node node) const {
    return level == levels_.size() ? 1 : levels_[level].nodes[node].count;
  }

  struct Edge {
    std::uint64_t before = 0;    ///< number of paths through the node's earlier edges
    std::uint32_t position = 0;  ///< position of the value in its parameter's list
    Node child = 0;
  };
  std::uint32_t degree(std::size_t level, Node node) const {
    const Level& at = levels_[level];
    const NodeData& data = at.nodes[node];
    return data.kind & kPlain ? data.kind & ~kPlain : at.shapes[data.kind].degree;
  }
  /// Returns the i-th edge in the order of positions.
  Edge edge(std::size_t level, Node node, std::uint32_t i) const;
  /// Returns the edge that contains the index-th path from `node`; index < count.
  Edge edge_at(std::size_t level, Node node, std::uint64_t index) const;
  /// Finds the edge of a value; returns false if there is none.
  bool edge_of(std::size_t level, Node node, std::uint32_t position, Edge& edge) const;

  std::size_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kPlain = 0x80000000u;
  /// A node with more distinct children than this is stored in plain form.
  static constexpr std::uint32_t kMostSlots = 4;
  struct NodeData {
    std::uint64_t count;
    std::uint32_t kind;   // kPlain | degree, or the index of the shape
    std::uint32_t first;  // into edges, or into children
  };
  struct Shape {
    std::uint32_t first;   // into shape_position and shape_slot
    std::uint32_t prefix;  // into shape_prefix: slots counts per edge
    std::uint32_t degree;
    std::uint32_t slots;
  };
  struct Level {
    std::vector<NodeData> nodes;
    std::vector<Edge> edges;
    std::vector<Node> children;
    std::vector<Shape> shapes;
    std::vector<std::uint32_t> shape_position;
    std::vector<std::uint32_t> shape_slot;
    std::vector<std::uint32_t> shape_prefix;  // by edge and slot: number of earlier edges with that slot
  };
  class LevelBuilder;

  Edge shaped_edge(std::size_t level, const NodeData& data, const Shape& shape, std::uint32_t i) const;

  std::vector<Level> levels_;
  std::vector<std::uint32_t> parameters_;
  Node root_ = 0;
  bool empty_ = false;
  double approximate_size_ = 1;
};

// ---- inner loops of a walk

inline Diagram::Edge Diagram::shaped_edge(std::size_t level, const NodeData& data, const Shape& shape,
                                          std::uint32_t i) const {
  const Level& at = levels_[level];
  const std::uint32_t* prefix = at.shape_prefix.data() + shape.prefix + static_cast<std::size_t>(i) * shape.slots;
  const Node* children = at.children.data() + data.first;
  std::uint64_t before = 0;
  for (std::uint32_t s = 0; s < shape.slots; ++s) before += prefix[s] * count(level + 1, children[s]);
  return {before, at.shape_position[shape.first + i], children[at.shape_slot[shape.first + i]]};
}

inline Diagram::Edge Diagram::edge(std::size_t level, Node node, std::uint32_t i) const {
  const Level& at = levels_[level];
  const NodeData& data = at.nodes[node];
  if (data.kind & kPlain) return at.edges[data.first + i];
  return shaped_edge(level, data, at.shapes[data.kind], i);
}

inline Diagram::Edge Diagram::edge_at(std::size_t level, Node node, std::uint64_t index) const {
  const Level& at = levels_[level];
  const NodeData& data = at.nodes[node];
  if (data.kind & kPlain) {
    const Edge* first = at.edges.data() + data.first;
    const Edge* last = first + (data.kind & ~kPlain);
    while (last - first > 8) {
      const Edge* middle = first + (last - first) / 2;
      (middle->before <= index ? first : last) = middle;
    }
    while (last - first > 1 && (last - 1)->before > index) --last;
    return *(last - 1);
  }
  const Shape& shape = at.shapes[data.kind];
  const std::uint32_t* position = at.shape_position.data() + shape.first;
  const Node* children = at.children.data() + data.first;
  if (shape.degree == 1) return {0, *position, *children};
  if (shape.slots == 1) {  // all values have equal numbers of paths
    const std::uint64_t ways = count(level + 1, *children);
    std::uint64_t i = index;
    if (ways != 1)  // 32-bit division costs a fraction of 64-bit division
      i = (index | ways) >> 32 == 0 ? static_cast<std::uint32_t>(index) / static_cast<std::uint32_t>(ways)
                                    : index / ways;
    return {i * ways, position[i], *children};
  }
  std::uint64_t ways[kMostSlots];
  for (std::uint32_t s = 0; s < shape.slots; ++s) ways[s] = count(level + 1, children[s]);
  const auto before = [&](std::uint32_t i) {
    const std::uint32_t* prefix = at.shape_prefix.data() + shape.prefix + static_cast<std::size_t>(i) * shape.slots;
    std::uint64_t sum = 0;
    for (std::uint32_t s = 0; s < shape.slots; ++s) sum += prefix[s] * ways[s];
    return sum;
  };
  std::uint32_t low = 0, high = shape.degree;
  std::uint64_t before_low = 0;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    const std::uint64_t before_middle = before(middle);
    if (before_middle <= index) {
      low = middle;
      before_low = before_middle;
    } else {
      high = middle;
    }
  }
  return {before_low, position[low], children[at.shape_slot[shape.first + low]]};
}

inline bool Diagram::edge_of(std::size_t level, Node node, std::uint32_t position, Edge& edge) const {
  const Level& at = levels_[level];
  const NodeData& data = at.nodes[node];
  if (data.kind & kPlain) {
    const Edge* first = at.edges.data() + data.first;
    const Edge* last = first + (data.kind & ~kPlain);
    // most nodes have all values, or all from the first one on
    if (position < static_cast<std::uint32_t>(last - first) && first[position].position == position) {
      edge = first[position];
      return true;
    }
    first = std::lower_bound(first, last, position, [](const Edge& e, std::uint32_t p) { return e.position < p; });
    if (first == last || first->position != position) return false;
    edge = *first;
    return true;
  }
  const Shape& shape = at.shapes[data.kind];
  const std::uint32_t* first = at.shape_position.data() + shape.first;
  std::uint32_t i = position;
  if (position >= shape.degree || first[position] != position) {
    i = static_cast<std::uint32_t>(std::lower_bound(first, first + shape.degree, position) - first);
    if (i == shape.degree || first[i] != position) return false;
  }
  edge = shaped_edge(level, data, shape, i);
  return true;
}

}  // namespace ergotune
