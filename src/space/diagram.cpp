#include "space/diagram.hpp"

#include <bit>
#include <limits>

namespace ergotune {

namespace {
constexpr std::uint64_t kLimit = std::uint64_t{1} << 63;
constexpr Diagram::Node kDead = std::numeric_limits<Diagram::Node>::max();

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
  return hash ^ (hash >> 29);
}
}  // namespace

bool Diagram::prepend(const std::vector<std::uint32_t>& parameters, const Layers& layers) {
  parameters_.insert(parameters_.begin(), parameters.begin(), parameters.end());
  bool fits = true;
  const double size_behind = approximate_size_;
  std::vector<Node> node_of_next{root_};  // of each state of the layer behind
  std::vector<double> ways_of_next{1};
  for (std::size_t l = layers.size(); l-- > 0;) {
    const Layer& layer = layers[l];
    const std::size_t states = layer.states();
    std::vector<Node> node_of(states, kDead);
    std::vector<double> ways_of(states, 0);
    const std::size_t first_node = count_.size();
    std::vector<Node> table(std::bit_ceil(std::max<std::size_t>(16, 2 * states)), kDead);
    for (std::size_t s = 0; s < states; ++s) {
      const std::size_t first_edge = edges_.size();
      std::uint64_t hash = 0, total = 0;
      double ways = 0;
      for (std::uint32_t e = layer.first_edge[s]; e < layer.first_edge[s + 1]; ++e) {
        const Node child = node_of_next[layer.next[e]];
        if (child == kDead) continue;
        edges_.push_back({total, layer.position[e], child});
        hash = mix(hash, (static_cast<std::uint64_t>(layer.position[e]) << 32) | child);
        ways += ways_of_next[layer.next[e]];
        total += count_[child];
        if (total >= kLimit || count_[child] >= kLimit) {
          fits = false;
          total = kLimit;
        }
      }
      if (edges_.size() == first_edge) continue;  // a dead end
      ways_of[s] = ways;
      // the same node may be there already
      std::size_t slot = hash & (table.size() - 1);
      const auto same = [&](Node node) {
        const std::size_t begin = first_edge_[node], length = first_edge_[node + 1] - begin;
        return length == edges_.size() - first_edge &&
               std::equal(edges_.begin() + static_cast<std::ptrdiff_t>(begin),
                          edges_.begin() + static_cast<std::ptrdiff_t>(begin + length),
                          edges_.begin() + static_cast<std::ptrdiff_t>(first_edge),
                          [](const Edge& a, const Edge& b) {
                            return a.position == b.position && a.child == b.child;
                          });
      };
      while (table[slot] != kDead && !same(table[slot])) slot = (slot + 1) & (table.size() - 1);
      if (table[slot] != kDead) {
        edges_.resize(first_edge);
      } else {
        table[slot] = static_cast<Node>(count_.size());
        count_.push_back(total);
        first_edge_.push_back(static_cast<std::uint32_t>(edges_.size()));
      }
      node_of[s] = table[slot];
    }
    (void)first_node;
    node_of_next = std::move(node_of);
    ways_of_next = std::move(ways_of);
  }
  if (node_of_next.empty() || node_of_next[0] == kDead) {
    empty_ = true;
    approximate_size_ = 0;
    return true;
  }
  root_ = node_of_next[0];
  approximate_size_ = size_behind * ways_of_next[0];
  return fits;
}

std::size_t Diagram::memory_bytes() const {
  return first_edge_.capacity() * sizeof(std::uint32_t) + edges_.capacity() * sizeof(Edge) +
         count_.capacity() * sizeof(std::uint64_t) + parameters_.capacity() * sizeof(std::uint32_t);
}

void Diagram::shrink() {
  first_edge_.shrink_to_fit();
  edges_.shrink_to_fit();
  count_.shrink_to_fit();
}

}  // namespace ergotune
