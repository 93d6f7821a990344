// Neighbours of a configuration, found by walking the diagram beside the configuration's own path.
#include <algorithm>

#include "space/search_space_state.hpp"

namespace ergotune {
namespace {

using Positions = std::span<const std::uint32_t>;

// Index of the configuration that has `values` from parameter p on, given where the walk stands; false when
// there is none. `index` holds the part of the index before p.
bool finish_walk(const std::vector<Diagram>& chains, const std::vector<std::uint32_t>& chain_of,
                 Positions values, std::size_t p, SpaceCursor cursor, std::uint64_t& index) {
  for (; p < values.size(); ++p) {
    const std::uint32_t c = chain_of[p];
    const auto* edge = chains[c].edge_of(cursor.node(c), values[p]);
    if (edge == nullptr) return false;
    const std::uint64_t others = cursor.others(chains, c);
    index += edge->before * others;
    cursor.step(chains, c, *edge, others);
  }
  return true;
}

bool beside(std::uint32_t a, std::uint32_t b) { return a + 1 == b || b + 1 == a; }

// All configurations within one position of `values` in every parameter, in order of their index.
void collect_adjacent(const std::vector<Diagram>& chains, const std::vector<std::uint32_t>& chain_of,
                      Positions values, std::size_t p, const SpaceCursor& cursor, std::uint64_t index,
                      std::vector<ConfigurationIndex>& out) {
  if (p == values.size()) {
    out.push_back(index);
    return;
  }
  const std::uint32_t c = chain_of[p];
  const std::uint64_t others = cursor.others(chains, c);
  const std::uint32_t low = values[p] > 0 ? values[p] - 1 : 0;
  for (std::uint32_t v = low; v <= values[p] + 1; ++v) {
    const auto* edge = chains[c].edge_of(cursor.node(c), v);
    if (edge == nullptr) continue;
    SpaceCursor next = cursor;
    next.step(chains, c, *edge, others);
    collect_adjacent(chains, chain_of, values, p + 1, next, index + edge->before * others, out);
  }
}

// One chain: the walk beside the path ends where both meet in the same node.
void single_chain(const Diagram& chain, Positions values, ConfigurationIndex index, bool strictly_adjacent,
                  std::vector<ConfigurationIndex>& out) {
  constexpr std::size_t kInline = 64;
  std::array<Diagram::Node, kInline + 1> inline_nodes;
  std::array<std::uint64_t, kInline + 1> inline_before;
  std::vector<Diagram::Node> heap_nodes;
  std::vector<std::uint64_t> heap_before;
  Diagram::Node* nodes = inline_nodes.data();
  std::uint64_t* before = inline_before.data();  // the part of the index from the first p parameters
  const std::size_t dimensions = values.size();
  if (dimensions > kInline) {
    heap_nodes.resize(dimensions + 1);
    heap_before.resize(dimensions + 1);
    nodes = heap_nodes.data();
    before = heap_before.data();
  }
  nodes[0] = chain.root();
  before[0] = 0;
  for (std::size_t p = 0; p < dimensions; ++p) {
    const auto* edge = chain.edge_of(nodes[p], values[p]);
    nodes[p + 1] = edge->child;
    before[p + 1] = before[p] + edge->before;
  }
  for (std::size_t p = 0; p < dimensions; ++p) {
    for (const auto* alternative = chain.begin(nodes[p]); alternative != chain.end(nodes[p]); ++alternative) {
      if (alternative->position == values[p]) continue;
      if (strictly_adjacent && !beside(alternative->position, values[p])) continue;
      Diagram::Node node = alternative->child;
      std::uint64_t found = before[p] + alternative->before;
      std::size_t q = p + 1;
      while (q < dimensions && node != nodes[q]) {
        const auto* edge = chain.edge_of(node, values[q]);
        if (edge == nullptr) break;
        found += edge->before;
        node = edge->child;
        ++q;
      }
      if (q == dimensions || node == nodes[q]) out.push_back(found + (index - before[q]));
    }
  }
}

}  // namespace

void SearchSpace::neighbours(ConfigurationIndex index, Neighbourhood kind,
                             std::vector<ConfigurationIndex>& out) const {
  out.clear();
  const auto& chains = state_->built.chains;
  const auto& chain_of = state_->chain_of;
  std::array<std::uint32_t, 64> inline_values;
  std::vector<std::uint32_t> heap_values;
  if (dimensions() > inline_values.size()) heap_values.resize(dimensions());
  const std::span<std::uint32_t> values =
      heap_values.empty() ? std::span(inline_values).first(dimensions()) : std::span(heap_values);
  values_at(index, values);
  if (kind == Neighbourhood::adjacent) {
    collect_adjacent(chains, chain_of, values, 0, SpaceCursor(chains, size()), 0, out);
    out.erase(std::remove(out.begin(), out.end(), index), out.end());
    return;
  }
  const bool strictly = kind == Neighbourhood::strictly_adjacent;
  if (state_->single()) {
    single_chain(chains[0], values, index, strictly, out);
  } else {
    SpaceCursor cursor(chains, size());
    std::uint64_t before = 0;
    for (std::size_t p = 0; p < values.size(); ++p) {
      const std::uint32_t c = chain_of[p];
      const Diagram& chain = chains[c];
      const std::uint64_t others = cursor.others(chains, c);
      const Diagram::Edge* own = nullptr;
      for (const auto* edge = chain.begin(cursor.node(c)); edge != chain.end(cursor.node(c)); ++edge) {
        if (edge->position == values[p]) {
          own = edge;
          continue;
        }
        if (strictly && !beside(edge->position, values[p])) continue;
        SpaceCursor next = cursor;
        next.step(chains, c, *edge, others);
        std::uint64_t found = before + edge->before * others;
        if (finish_walk(chains, chain_of, values, p + 1, next, found)) out.push_back(found);
      }
      before += own->before * others;
      cursor.step(chains, c, *own, others);
    }
  }
  std::sort(out.begin(), out.end());
}

}  // namespace ergotune
