// Finds the neighbours of a configuration by walking the diagram next to the configuration's path.
#include <algorithm>

#include "space/search_space_state.hpp"

namespace ergotune {
namespace {

using Positions = std::span<const std::uint32_t>;

/// The chains, and the position of each parameter in them.
struct ChainPositions {
  const std::vector<Diagram>& chains;
  const std::vector<std::uint32_t>& chain_of;
  const std::vector<std::uint32_t>& level_of;
};

// Returns the index of the configuration that has `values` from parameter p on, starting from `cursor`; returns false
// if it does not exist. `index` holds the part of the index before p.
bool finish_walk(const ChainPositions& places, Positions values, std::size_t p, SpaceCursor cursor,
                 std::uint64_t& index) {
  Diagram::Edge edge;
  for (; p < values.size(); ++p) {
    const std::uint32_t c = places.chain_of[p], level = places.level_of[p];
    const Diagram& chain = places.chains[c];
    if (!chain.edge_of(level, cursor.node(c), values[p], edge)) return false;
    const std::uint64_t others = cursor.others(chain, c, level);
    index += edge.before * others;
    cursor.step(chain, c, level + 1, edge, others);
  }
  return true;
}

// Collects all configurations within one position of `values` in each parameter, in the order of their indices.
void collect_adjacent(const ChainPositions& places, Positions values, std::size_t p, const SpaceCursor& cursor,
                      std::uint64_t index, std::vector<ConfigurationIndex>& out) {
  if (p == values.size()) {
    out.push_back(index);
    return;
  }
  const std::uint32_t c = places.chain_of[p], level = places.level_of[p];
  const Diagram& chain = places.chains[c];
  const std::uint64_t others = cursor.others(chain, c, level);
  const std::uint32_t low = values[p] > 0 ? values[p] - 1 : 0;
  Diagram::Edge edge;
  for (std::uint32_t v = low; v <= values[p] + 1; ++v) {
    if (!chain.edge_of(level, cursor.node(c), v, edge)) continue;
    SpaceCursor next = cursor;
    next.step(chain, c, level + 1, edge, others);
    collect_adjacent(places, values, p + 1, next, index + edge.before * others, out);
  }
}

// Visits the edges of a node that a neighbour may take instead of the one to `own`.
template <class F>
void for_each_alternative(const Diagram& chain, std::size_t level, Diagram::Node node, std::uint32_t own, bool strictly,
                          F f) {
  if (strictly) {
    Diagram::Edge edge;
    if (own > 0 && chain.edge_of(level, node, own - 1, edge)) f(edge);
    if (chain.edge_of(level, node, own + 1, edge)) f(edge);
    return;
  }
  const std::uint32_t degree = chain.degree(level, node);
  for (std::uint32_t i = 0; i < degree; ++i) {
    const auto edge = chain.edge(level, node, i);
    if (edge.position != own) f(edge);
  }
}

// A single chain: a walk next to the path ends where both reach the same node.
void single_chain(const Diagram& chain, Positions values, ConfigurationIndex index, bool strictly,
                  std::vector<ConfigurationIndex>& out) {
  constexpr std::size_t kInline = 64;
  std::array<Diagram::Node, kInline + 1> inline_nodes;
  std::array<std::uint64_t, kInline + 1> inline_before;
  std::vector<Diagram::Node> heap_nodes;
  std::vector<std::uint64_t> heap_before;
  Diagram::Node* nodes = inline_nodes.data();
  std::uint64_t* before = inline_before.data();  // part of the index from the first p parameters
  const std::size_t dimensions = values.size();
  if (dimensions > kInline) {
    heap_nodes.resize(dimensions + 1);
    heap_before.resize(dimensions + 1);
    nodes = heap_nodes.data();
    before = heap_before.data();
  }
  nodes[0] = chain.root();
  before[0] = 0;
  Diagram::Edge edge;
  for (std::size_t p = 0; p < dimensions; ++p) {
    chain.edge_of(p, nodes[p], values[p], edge);
    nodes[p + 1] = edge.child;
    before[p + 1] = before[p] + edge.before;
  }
  for (std::size_t p = 0; p < dimensions; ++p) {
    for_each_alternative(chain, p, nodes[p], values[p], strictly, [&](const Diagram::Edge& alternative) {
      Diagram::Node node = alternative.child;
      std::uint64_t found = before[p] + alternative.before;
      std::size_t q = p + 1;
      Diagram::Edge step;
      for (; q < dimensions && node != nodes[q]; ++q) {
        if (!chain.edge_of(q, node, values[q], step)) return;
        found += step.before;
        node = step.child;
      }
      out.push_back(found + (index - before[q]));
    });
  }
}

}  // namespace

void SearchSpace::neighbours(ConfigurationIndex index, Neighbourhood kind, std::vector<ConfigurationIndex>& out) const {
  out.clear();
  const ChainPositions places{state_->built.chains, state_->chain_of, state_->level_of};
  std::array<std::uint32_t, 64> inline_values;
  std::vector<std::uint32_t> heap_values;
  if (dimensions() > inline_values.size()) heap_values.resize(dimensions());
  const std::span<std::uint32_t> values =
      heap_values.empty() ? std::span(inline_values).first(dimensions()) : std::span(heap_values);
  values_at(index, values);
  if (kind == Neighbourhood::adjacent) {
    collect_adjacent(places, values, 0, SpaceCursor(places.chains, size()), 0, out);
    out.erase(std::remove(out.begin(), out.end(), index), out.end());
    return;
  }
  const bool strictly = kind == Neighbourhood::strictly_adjacent;
  if (state_->single()) {
    single_chain(places.chains[0], values, index, strictly, out);
  } else {
    SpaceCursor cursor(places.chains, size());
    std::uint64_t before = 0;
    for (std::size_t p = 0; p < values.size(); ++p) {
      const std::uint32_t c = places.chain_of[p], level = places.level_of[p];
      const Diagram& chain = places.chains[c];
      const std::uint64_t others = cursor.others(chain, c, level);
      for_each_alternative(chain, level, cursor.node(c), values[p], strictly, [&](const Diagram::Edge& edge) {
        SpaceCursor next = cursor;
        next.step(chain, c, level + 1, edge, others);
        std::uint64_t found = before + edge.before * others;
        if (finish_walk(places, values, p + 1, next, found)) out.push_back(found);
      });
      Diagram::Edge own;
      chain.edge_of(level, cursor.node(c), values[p], own);
      before += own.before * others;
      cursor.step(chain, c, level + 1, own, others);
    }
  }
  std::ranges::sort(out);
}

}  // namespace ergotune
