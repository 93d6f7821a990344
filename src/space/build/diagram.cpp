#include "space/build/diagram.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <limits>
#include <unordered_map>

namespace ergotune {
namespace {

constexpr std::uint64_t kLimit = std::uint64_t{1} << 63;
constexpr Diagram::Node kDead = std::numeric_limits<Diagram::Node>::max();

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
  return hash ^ (hash >> 29);
}

/// Frees unused capacity, unless copying costs more than it saves.
template <class T>
void shrink(std::vector<T>& items) {
  if (items.capacity() > items.size() + items.size() / 4) items.shrink_to_fit();
}

/// Open-addressing hash table of numbers whose contents the owner compares.
class NumberTable {
 public:
  /// Reserves room for `count` numbers, which must not be exceeded.
  explicit NumberTable(std::size_t count) : slots_(std::bit_ceil(std::max<std::size_t>(16, 2 * count)), kDead) {}
  /// Returns the number of an equal entry, or inserts `fresh` and returns kDead.
  template <class Same>
  std::uint32_t find_or_insert(std::uint64_t hash, std::uint32_t fresh, const Same& same) {
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at] != kDead) {
      if (same(slots_[at])) return slots_[at];
      at = (at + 1) & (slots_.size() - 1);
    }
    slots_[at] = fresh;
    return kDead;
  }

 private:
  std::vector<std::uint32_t> slots_;
};

}  // namespace

/// Builds one level: creates nodes for states, and merges equal ones.
class Diagram::LevelBuilder {
 public:
  /// `behind`: the level of the children; nullptr if the end is the only child. `most`: maximum number of nodes.
  LevelBuilder(Level& level, const Level* behind, const std::unordered_map<Node, double>& huge_behind, std::size_t most)
      : level_(level), behind_(behind), huge_behind_(huge_behind), known_(most) {}

  /// Numbers of paths of nodes whose count is saturated.
  std::unordered_map<Node, double> huge;

  /// Returns the node of a state, or kDead. `child` holds the node for each of its slots (kDead: none).
  Node node(const Layer& layer, std::uint32_t key, const std::vector<Node>& child) {
    // determine the live slots, and those that lead to the same child
    distinct_.clear();
    rename_.resize(child.size());
    for (std::size_t s = 0; s < child.size(); ++s) {
      if (child[s] == kDead) {
        rename_[s] = kDead;
        continue;
      }
      std::size_t d = 0;
      if (distinct_.size() <= kMostSlots) {
        while (d < distinct_.size() && distinct_[d] != child[s]) ++d;
        if (d == distinct_.size()) distinct_.push_back(child[s]);
      }
      rename_[s] = static_cast<std::uint32_t>(d);
    }
    if (distinct_.empty()) return kDead;
    return distinct_.size() <= kMostSlots ? shaped(layer, key, child.size()) : plain(layer, key, child);
  }

 private:
  Node plain(const Layer& layer, std::uint32_t key, const std::vector<Node>& child) {
    const std::size_t first = level_.edges.size();
    std::uint64_t hash = 1, total = 0;
    double real = 0;
    for (std::uint32_t c = layer.first_choice[key]; c < layer.first_choice[key + 1]; ++c) {
      const Node next = child[layer.slot_of(key, c)];
      if (next == kDead) continue;
      level_.edges.push_back({total, layer.position[c], next});
      hash = mix(hash, (static_cast<std::uint64_t>(layer.position[c]) << 32) | next);
      total = std::min(kLimit, total + ways(next));
      real += real_ways(next);
    }
    const auto degree = static_cast<std::uint32_t>(level_.edges.size() - first);
    const auto same = [&](Node other) {
      const NodeData& data = level_.nodes[other];
      if (data.kind != (kPlain | degree)) return false;
      for (std::uint32_t i = 0; i < degree; ++i) {
        const Edge &a = level_.edges[data.first + i], &b = level_.edges[first + i];
        if (a.position != b.position || a.child != b.child) return false;
      }
      return true;
    };
    const Node found = known_.find_or_insert(hash, static_cast<Node>(level_.nodes.size()), same);
    if (found != kDead) {
      level_.edges.resize(first);
      return found;
    }
    return add({total, kPlain | degree, static_cast<std::uint32_t>(first)}, real);
  }

  Node shaped(const Layer& layer, std::uint32_t key, std::size_t slots) {
    const std::uint32_t number = shape_of(layer, key, slots);
    const Shape& shape = level_.shapes[number];
    // children in the order of the shape's slots
    std::uint64_t hash = mix(2, number);
    std::array<Node, kMostSlots> children{};
    for (std::uint32_t s = 0; s < shape.slots; ++s) {
      children[s] = distinct_[order_[s]];
      hash = mix(hash, children[s]);
    }
    const auto same = [&](Node other) {
      const NodeData& data = level_.nodes[other];
      return data.kind == number && std::equal(children.begin(), children.begin() + shape.slots,
                                               level_.children.begin() + static_cast<std::ptrdiff_t>(data.first));
    };
    const Node found = known_.find_or_insert(hash, static_cast<Node>(level_.nodes.size()), same);
    if (found != kDead) return found;
    std::uint64_t total = 0;
    double real = 0;
    for (std::uint32_t s = 0; s < shape.slots; ++s) {
      const std::uint32_t edges = shape_total_[number][s];
      std::uint64_t part = 0;
      if (__builtin_mul_overflow(ways(children[s]), edges, &part)) part = kLimit;
      total = std::min(kLimit, total + std::min(part, kLimit));
      real += edges * real_ways(children[s]);
    }
    const auto first = static_cast<std::uint32_t>(level_.children.size());
    level_.children.insert(level_.children.end(), children.begin(), children.begin() + shape.slots);
    return add({total, number, first}, real);
  }

  std::uint64_t ways(Node child) const { return behind_ == nullptr ? 1 : behind_->nodes[child].count; }
  double real_ways(Node child) const {
    const std::uint64_t count = ways(child);
    return count < kLimit ? static_cast<double>(count) : huge_behind_.at(child);
  }

  Node add(NodeData data, double real) {
    const auto node = static_cast<Node>(level_.nodes.size());
    level_.nodes.push_back(data);
    if (data.count >= kLimit) huge.emplace(node, real);
    return node;
  }

  // Returns the shape of a key under the current renaming; afterwards, order_ maps its slots to distinct children.
  std::uint32_t shape_of(const Layer& layer, std::uint32_t key, std::size_t slots) {
    std::uint64_t code = 0;
    const bool cached = slots <= 8;
    if (cached) {
      for (std::size_t s = 0; s < slots; ++s) code = code * 8 + (rename_[s] == kDead ? 7 : rename_[s]);
      code = (static_cast<std::uint64_t>(key) << 28) | (static_cast<std::uint64_t>(slots) << 24) | code;
      if (code == last_code_) {
        order_ = last_order_;
        return last_shape_;
      }
      if (const auto known = shape_of_code_.find(code); known != shape_of_code_.end()) {
        last_code_ = code;
        last_shape_ = known->second.first;
        last_order_ = order_ = known->second.second;
        return last_shape_;
      }
    }
    scratch_.clear();
    std::array<std::uint32_t, kMostSlots> number{};
    number.fill(kDead);
    std::uint32_t used = 0;
    std::uint64_t hash = 3;
    for (std::uint32_t c = layer.first_choice[key]; c < layer.first_choice[key + 1]; ++c) {
      const std::uint32_t distinct = rename_[layer.slot_of(key, c)];
      if (distinct == kDead) continue;
      if (number[distinct] == kDead) {
        order_[used] = distinct;
        number[distinct] = used++;
      }
      scratch_.push_back({layer.position[c], number[distinct]});
      hash = mix(hash, (static_cast<std::uint64_t>(layer.position[c]) << 8) | number[distinct]);
    }
    const auto same = [&](std::uint32_t other) {
      const Shape& shape = level_.shapes[other];
      if (shape.degree != scratch_.size() || shape.slots != used) return false;
      for (std::uint32_t i = 0; i < shape.degree; ++i)
        if (level_.shape_position[shape.first + i] != scratch_[i].first ||
            level_.shape_slot[shape.first + i] != scratch_[i].second)
          return false;
      return true;
    };
    std::uint32_t found = kDead;
    for (auto [shape, last] = known_shapes_.equal_range(hash); shape != last; ++shape)
      if (same(shape->second)) found = shape->second;
    if (found == kDead) {
      found = static_cast<std::uint32_t>(level_.shapes.size());
      known_shapes_.emplace(hash, found);
      level_.shapes.push_back({static_cast<std::uint32_t>(level_.shape_position.size()),
                               static_cast<std::uint32_t>(level_.shape_prefix.size()),
                               static_cast<std::uint32_t>(scratch_.size()), used});
      std::array<std::uint32_t, kMostSlots> total{};
      for (const auto& [position, slot] : scratch_) {
        level_.shape_position.push_back(position);
        level_.shape_slot.push_back(slot);
        level_.shape_prefix.insert(level_.shape_prefix.end(), total.begin(), total.begin() + used);
        ++total[slot];
      }
      shape_total_.push_back(total);
    }
    if (cached) {
      shape_of_code_.emplace(code, std::pair(found, order_));
      last_code_ = code;
      last_shape_ = found;
      last_order_ = order_;
    }
    return found;
  }

  Level& level_;
  const Level* behind_;
  const std::unordered_map<Node, double>& huge_behind_;
  std::vector<Node> distinct_;
  std::vector<std::uint32_t> rename_;
  std::array<std::uint32_t, kMostSlots> order_{};
  NumberTable known_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> known_shapes_;  // by hash
  std::vector<std::array<std::uint32_t, kMostSlots>> shape_total_;      // number of edges by slot
  std::vector<std::pair<std::uint32_t, std::uint32_t>> scratch_;
  std::unordered_map<std::uint64_t, std::pair<std::uint32_t, std::array<std::uint32_t, kMostSlots>>> shape_of_code_;
  std::uint64_t last_code_ = ~std::uint64_t{0};
  std::uint32_t last_shape_ = 0;
  std::array<std::uint32_t, kMostSlots> last_order_{};
};

void Diagram::prepend(const std::vector<std::uint32_t>& parameters, Layers&& layers) {
  parameters_.insert(parameters_.begin(), parameters.begin(), parameters.end());
  if (empty_) return;
  std::vector<Node> node_of_next{root_};  // by state of the next layer
  std::unordered_map<Node, double> huge;  // of the next level
  if (size() >= kLimit) huge.emplace(root_, approximate_size_);
  std::vector<Level> fresh;
  fresh.reserve(layers.size());
  std::vector<Node> child;
  while (!layers.empty()) {
    const Layer& layer = layers.back();
    const std::size_t states = layer.states();
    const Level* behind = !fresh.empty() ? &fresh.back() : levels_.empty() ? nullptr : &levels_[0];
    Level& level = fresh.emplace_back();
    std::vector<Node> node_of(states, kDead);
    LevelBuilder builder(level, behind, huge, states);
    // Reserves the maximum: untouched memory is not used, while a growing vector temporarily needs twice the memory.
    std::size_t edges = 0, children = 0;
    for (std::size_t s = 0; s < states; ++s) {
      const std::uint32_t key = layer.key_of(s);
      if (layer.slots[key] > kMostSlots) edges += layer.first_choice[key + 1] - layer.first_choice[key];
      children += std::min(layer.slots[key], kMostSlots);
    }
    if (states > 1000) {
      level.edges.reserve(edges);
      level.nodes.reserve(states);
      level.children.reserve(children);
    }
    std::size_t next = 0;
    for (std::size_t s = 0; s < states; ++s) {
      const std::uint32_t key = layer.key_of(s);
      child.resize(layer.slots[key]);
      for (auto& node : child) node = node_of_next[layer.next[next++]];
      node_of[s] = builder.node(layer, key, child);
    }
    huge = std::move(builder.huge);
    node_of_next = std::move(node_of);
    shrink(level.nodes);
    shrink(level.edges);
    shrink(level.children);
    layers.pop_back();
  }
  if (node_of_next.empty() || node_of_next[0] == kDead) {
    empty_ = true;
    approximate_size_ = 0;
    levels_.clear();
    return;
  }
  root_ = node_of_next[0];
  const std::uint64_t count = fresh.back().nodes[root_].count;
  approximate_size_ = count < kLimit ? static_cast<double>(count) : huge.at(root_);
  std::ranges::reverse(fresh);
  levels_.insert(levels_.begin(), std::make_move_iterator(fresh.begin()), std::make_move_iterator(fresh.end()));
}

std::size_t Diagram::memory_bytes() const {
  std::size_t bytes = parameters_.capacity() * sizeof(std::uint32_t) + levels_.capacity() * sizeof(Level);
  for (const auto& level : levels_)
    bytes += level.nodes.capacity() * sizeof(NodeData) + level.edges.capacity() * sizeof(Edge) +
             level.children.capacity() * sizeof(Node) + level.shapes.capacity() * sizeof(Shape) +
             (level.shape_position.capacity() + level.shape_slot.capacity() + level.shape_prefix.capacity()) *
                 sizeof(std::uint32_t);
  return bytes;
}

}  // namespace ergotune
