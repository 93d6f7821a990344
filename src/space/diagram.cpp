#include "space/diagram.hpp"

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

/// Open addressing over numbers whose content the owner compares.
class NumberTable {
 public:
  void reserve(std::size_t count) {
    slots_.assign(std::bit_ceil(std::max<std::size_t>(16, 2 * count)), kDead);
  }
  /// The number equal to the new one, or kDead after entering `fresh`.
  template <class Same>
  std::uint32_t find_or_insert(std::uint64_t hash, std::uint32_t fresh, const Same& same) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at] != kDead) {
      if (same(slots_[at])) return slots_[at];
      at = (at + 1) & (slots_.size() - 1);
    }
    slots_[at] = fresh;
    if (fresh >= hashes_.size()) hashes_.resize(fresh + 1);
    hashes_[fresh] = hash;
    ++used_;
    return kDead;
  }

 private:
  void grow() {
    std::vector<std::uint32_t> old(std::max<std::size_t>(16, 2 * slots_.size()), kDead);
    old.swap(slots_);
    for (const auto number : old) {
      if (number == kDead) continue;
      std::size_t at = hashes_[number] & (slots_.size() - 1);
      while (slots_[at] != kDead) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = number;
    }
  }
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint64_t> hashes_;
  std::size_t used_ = 0;
};

}  // namespace

/// Makes one level: nodes of states, equal ones merged.
class Diagram::LevelBuilder {
 public:
  LevelBuilder(Level& level, const std::vector<std::uint64_t>& ways_behind,
               const std::vector<double>& real_ways_behind)
      : level_(level), ways_behind_(ways_behind), real_ways_behind_(real_ways_behind) {}

  std::vector<double> real_ways;  // of each node

  /// The node of a state, or kDead. `child` holds the node of each of its slots (kDead where there is none).
  Node node(const Layer& layer, std::uint32_t key, const std::vector<Node>& child) {
    // which slots live, and which lead to the same child
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
    double ways = 0;
    for (std::uint32_t c = layer.first_choice[key]; c < layer.first_choice[key + 1]; ++c) {
      const Node next = child[layer.slot[c]];
      if (next == kDead) continue;
      level_.edges.push_back({total, layer.position[c], next});
      hash = mix(hash, (static_cast<std::uint64_t>(layer.position[c]) << 32) | next);
      total = std::min(kLimit, total + ways_behind_[next]);
      ways += real_ways_behind_[next];
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
    return add({total, kPlain | degree, static_cast<std::uint32_t>(first)}, ways);
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
      return data.kind == number &&
             std::equal(children.begin(), children.begin() + shape.slots,
                        level_.children.begin() + static_cast<std::ptrdiff_t>(data.first));
    };
    const Node found = known_.find_or_insert(hash, static_cast<Node>(level_.nodes.size()), same);
    if (found != kDead) return found;
    std::uint64_t total = 0;
    double ways = 0;
    for (std::uint32_t s = 0; s < shape.slots; ++s) {
      const std::uint32_t edges = shape_total_[number][s];
      std::uint64_t part = 0;
      if (__builtin_mul_overflow(ways_behind_[children[s]], edges, &part)) part = kLimit;
      total = std::min(kLimit, total + std::min(part, kLimit));
      ways += edges * real_ways_behind_[children[s]];
    }
    const auto first = static_cast<std::uint32_t>(level_.children.size());
    level_.children.insert(level_.children.end(), children.begin(), children.begin() + shape.slots);
    return add({total, number, first}, ways);
  }

  Node add(NodeData data, double ways) {
    level_.nodes.push_back(data);
    real_ways.push_back(ways);
    return static_cast<Node>(level_.nodes.size() - 1);
  }

  // The shape of a key under the present renaming; order_ then says which distinct child each of its slots
  // is.
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
      const std::uint32_t distinct = rename_[layer.slot[c]];
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
    std::uint32_t found =
        known_shapes_.find_or_insert(hash, static_cast<std::uint32_t>(level_.shapes.size()), same);
    if (found == kDead) {
      found = static_cast<std::uint32_t>(level_.shapes.size());
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
  const std::vector<std::uint64_t>& ways_behind_;
  const std::vector<double>& real_ways_behind_;
  std::vector<Node> distinct_;
  std::vector<std::uint32_t> rename_;
  std::array<std::uint32_t, kMostSlots> order_{};
  NumberTable known_, known_shapes_;
  std::vector<std::array<std::uint32_t, kMostSlots>> shape_total_;  // edges per slot
  std::vector<std::pair<std::uint32_t, std::uint32_t>> scratch_;
  std::unordered_map<std::uint64_t, std::pair<std::uint32_t, std::array<std::uint32_t, kMostSlots>>>
      shape_of_code_;
  std::uint64_t last_code_ = ~std::uint64_t{0};
  std::uint32_t last_shape_ = 0;
  std::array<std::uint32_t, kMostSlots> last_order_{};
};

void Diagram::prepend(const std::vector<std::uint32_t>& parameters, Layers&& layers) {
  parameters_.insert(parameters_.begin(), parameters.begin(), parameters.end());
  if (empty_) return;
  std::vector<Node> node_of_next{root_};    // of each state of the layer behind
  std::vector<std::uint64_t> ways{size()};  // of each node of the level behind
  std::vector<double> real_ways{approximate_size_};
  if (!levels_.empty()) {  // root_ need not be node 0
    ways.assign(root_ + 1, 0);
    real_ways.assign(root_ + 1, 0);
    ways[root_] = size();
    real_ways[root_] = approximate_size_;
  }
  std::vector<Level> fresh;
  std::vector<Node> child;
  while (!layers.empty()) {
    const Layer& layer = layers.back();
    const std::size_t states = layer.states();
    Level& level = fresh.emplace_back();
    std::vector<Node> node_of(states, kDead);
    LevelBuilder builder(level, ways, real_ways);
    std::size_t next = 0;
    for (std::size_t s = 0; s < states; ++s) {
      const std::uint32_t key = layer.key_of(s);
      child.resize(layer.slots[key]);
      for (auto& node : child) node = node_of_next[layer.next[next++]];
      node_of[s] = builder.node(layer, key, child);
    }
    ways.resize(level.nodes.size());
    for (std::size_t n = 0; n < ways.size(); ++n) ways[n] = level.nodes[n].count;
    real_ways = std::move(builder.real_ways);
    node_of_next = std::move(node_of);
    level.nodes.shrink_to_fit();
    level.edges.shrink_to_fit();
    level.children.shrink_to_fit();
    layers.pop_back();
  }
  if (node_of_next.empty() || node_of_next[0] == kDead) {
    empty_ = true;
    approximate_size_ = 0;
    levels_.clear();
    return;
  }
  root_ = node_of_next[0];
  approximate_size_ = real_ways[root_];
  std::reverse(fresh.begin(), fresh.end());
  levels_.insert(levels_.begin(), std::make_move_iterator(fresh.begin()),
                 std::make_move_iterator(fresh.end()));
}

std::size_t Diagram::nodes() const {
  std::size_t total = 0;
  for (const auto& level : levels_) total += level.nodes.size();
  return total;
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
