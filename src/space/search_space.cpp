#include "ergotune/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

#include "base/clock.hpp"
#include "space/search_space_state.hpp"

namespace ergotune {

SearchSpace::SearchSpace(std::unique_ptr<State> state) : state_(std::move(state)) {}
SearchSpace::SearchSpace(SearchSpace&&) noexcept = default;
SearchSpace& SearchSpace::operator=(SearchSpace&&) noexcept = default;
SearchSpace::~SearchSpace() = default;

void SearchSpace::State::finish() {
  size = built.size;
  chain_of.resize(built.parameters.size());
  level_of.resize(built.parameters.size());
  for (std::uint32_t c = 0; c < built.chains.size(); ++c) {
    const auto& members = built.chains[c].parameters();
    for (std::uint32_t l = 0; l < members.size(); ++l) {
      chain_of[members[l]] = c;
      level_of[members[l]] = l;
    }
  }
  position_of.resize(built.parameters.size());
  for (std::uint32_t p = 0; p < built.parameters.size(); ++p) {
    index_of_name.emplace(built.parameters[p].name, p);
    const auto& values = built.parameters[p].values;
    for (std::uint32_t v = 0; v < values.size(); ++v) position_of[p].emplace(values[v], v);
  }
}

namespace {
// Writes the rows of all paths from a node; `row` holds the values chosen so far.
void write_rows(const Diagram& chain, std::size_t level, Diagram::Node node, std::size_t width,
                std::vector<std::uint8_t>& row, std::uint8_t*& out) {
  const std::uint32_t degree = chain.degree(level, node);
  for (std::uint32_t i = 0; i < degree; ++i) {
    const auto edge = chain.edge(level, node, i);
    const auto position = static_cast<std::uint16_t>(edge.position);
    std::memcpy(row.data() + level * width, &position, width);  // little-endian
    if (level + 1 < chain.depth()) {
      write_rows(chain, level + 1, edge.child, width, row, out);
    } else {
      std::memcpy(out, row.data(), row.size());
      out += row.size();
    }
  }
}
}  // namespace

void SearchSpace::State::materialise() {
  std::size_t widest = 0;
  for (const auto& parameter : built.parameters) widest = std::max(widest, parameter.values.size());
  // other spaces are rare, and reading their diagram is as fast as reading a table
  if (!single() || size == 0 || widest > 0x10000) return;
  value_width = widest <= 0x100 ? 1 : 2;
  std::vector<std::uint8_t> row(built.parameters.size() * value_width);
  table.resize(size * row.size());
  std::uint8_t* out = table.data();
  write_rows(built.chains[0], 0, built.chains[0].root(), value_width, row, out);
}

SearchSpace SearchSpace::build(std::vector<Parameter> parameters, std::vector<Restriction> restrictions,
                               const SpaceOptions& options) {
  const double start = host_seconds();
  auto state = std::make_unique<State>();
  state->given_parameters = parameters;
  state->restrictions = std::move(restrictions);
  state->options = options;
  state->built = build_diagrams(std::move(parameters), state->restrictions, options);
  if (state->built.size >= std::uint64_t{1} << 63)
    throw UserError(
        fmt::format("the search space holds about {:.3g} configurations, more than 2^63 ({} parameters, {} "
                    "restrictions); restrict it further or give parameters fewer values",
                    state->built.approximate_size, state->built.parameters.size(), state->restrictions.size()));
  state->finish();
  if (state->size <= options.materialise_limit) state->materialise();
  state->seconds = host_seconds() - start;
  return SearchSpace(std::move(state));
}

namespace {

using Rows = std::vector<std::vector<std::uint32_t>>;

/// Returns the configurations as positions of values, sorted and without duplicates.
Rows rows_of(const std::vector<Configuration>& list, const std::vector<Parameter>& parameters) {
  std::vector<std::map<Value, std::uint32_t>> position_of(parameters.size());
  for (std::size_t p = 0; p < parameters.size(); ++p)
    for (std::uint32_t v = 0; v < parameters[p].values.size(); ++v) position_of[p].emplace(parameters[p].values[v], v);
  Rows rows;
  rows.reserve(list.size());
  for (const auto& configuration : list) {
    if (configuration.size() != parameters.size())
      throw UserError(fmt::format("a configuration has {} values where there are {} parameters", configuration.size(),
                                  parameters.size()));
    auto& row = rows.emplace_back(parameters.size());
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const auto found = position_of[p].find(configuration[p]);
      if (found == position_of[p].end())
        throw UserError(
            fmt::format("{} is not a value of parameter \"{}\"", configuration[p].to_literal(), parameters[p].name));
      row[p] = found->second;
    }
  }
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

/// Returns a trie of sorted rows; assembling chains then merges equal parts.
Layers trie_of(const Rows& rows, std::size_t dimensions) {
  Layers layers(dimensions);
  std::vector<std::size_t> begin{0};  // first row of each state
  for (std::size_t l = 0; l < dimensions; ++l) {
    Layer& layer = layers[l];
    std::vector<std::size_t> next;
    for (std::size_t s = 0; s < begin.size(); ++s) {
      layer.first_choice.push_back(static_cast<std::uint32_t>(layer.position.size()));
      const std::size_t end = s + 1 < begin.size() ? begin[s + 1] : rows.size();
      for (std::size_t r = begin[s]; r < end; ++r) {
        if (r > begin[s] && rows[r][l] == rows[r - 1][l]) continue;
        layer.position.push_back(rows[r][l]);
        layer.slot.push_back(static_cast<std::uint32_t>(layer.slot.size()) - layer.first_choice.back());
        layer.next.push_back(l + 1 == dimensions ? 0 : static_cast<std::uint32_t>(next.size()));
        next.push_back(r);
      }
      layer.slots.push_back(static_cast<std::uint32_t>(layer.position.size()) - layer.first_choice.back());
    }
    layer.first_choice.push_back(static_cast<std::uint32_t>(layer.position.size()));
    begin = std::move(next);
    if (begin.empty()) {
      layers.resize(l + 1);
      break;
    }
  }
  return layers;
}

}  // namespace

SearchSpace SearchSpace::from_configurations(std::vector<Parameter> parameters,
                                             const std::vector<Configuration>& list) {
  const double start = host_seconds();
  auto state = std::make_unique<State>();
  state->given_parameters = parameters;
  state->built.parameters = std::move(parameters);
  auto& built = state->built;
  for (Parameter& parameter : built.parameters) {
    built.cartesian_size *= static_cast<double>(parameter.values.size());
    parameter.range.reset();
    parameter.generator = nullptr;
  }
  const std::size_t dimensions = built.parameters.size();
  const Rows rows = rows_of(list, built.parameters);
  if (dimensions > 0) {
    std::vector<std::uint32_t> members(dimensions);
    std::iota(members.begin(), members.end(), 0u);
    std::vector<ComponentLayers> components;
    components.emplace_back(std::move(members), trie_of(rows, dimensions));
    assemble_chains(built, std::move(components));
  } else {
    built.size = list.empty() ? 0 : 1;
  }
  state->finish();
  state->seconds = host_seconds() - start;
  return SearchSpace(std::move(state));
}

std::size_t SearchSpace::dimensions() const { return state_->built.parameters.size(); }
const std::vector<Parameter>& SearchSpace::parameters() const { return state_->built.parameters; }
std::uint64_t SearchSpace::size() const { return state_->size; }
double SearchSpace::cartesian_size() const { return state_->built.cartesian_size; }
bool SearchSpace::materialised() const { return !state_->table.empty(); }
double SearchSpace::build_seconds() const { return state_->seconds; }

std::size_t SearchSpace::memory_bytes() const {
  std::size_t bytes = sizeof(State) + state_->table.capacity();
  for (const auto& chain : state_->built.chains) bytes += chain.memory_bytes();
  for (const auto& parameter : state_->built.parameters)
    bytes += sizeof(Parameter) + parameter.values.capacity() * sizeof(Value);
  return bytes;
}

std::optional<std::size_t> SearchSpace::parameter_index(std::string_view name) const {
  const auto found = state_->index_of_name.find(name);
  if (found == state_->index_of_name.end()) return std::nullopt;
  return found->second;
}

void SearchSpace::values_at(ConfigurationIndex index, std::span<std::uint32_t> out) const {
  assert(index < size() && out.size() == dimensions());
  if (!state_->table.empty()) {
    const std::size_t width = state_->value_width;
    const std::uint8_t* row = state_->table.data() + index * out.size() * width;
    for (std::size_t p = 0; p < out.size(); ++p) {
      if (width == 1) {
        out[p] = row[p];
      } else {
        std::uint16_t value;
        std::memcpy(&value, row + 2 * p, 2);
        out[p] = value;
      }
    }
    return;
  }
  const auto& chains = state_->built.chains;
  if (state_->single()) {
    const Diagram& chain = chains[0];
    Diagram::Node node = chain.root();
    for (std::size_t p = 0; p < out.size(); ++p) {
      const auto edge = chain.edge_at(p, node, index);
      index -= edge.before;
      out[p] = edge.position;
      node = edge.child;
    }
    return;
  }
  SpaceCursor cursor(chains, size());
  for (std::size_t p = 0; p < out.size(); ++p) {
    const std::uint32_t c = state_->chain_of[p], level = state_->level_of[p];
    const std::uint64_t others = cursor.others(chains[c], c, level);
    const auto edge = chains[c].edge_at(level, cursor.node(c), index / others);
    index -= edge.before * others;
    out[p] = edge.position;
    cursor.step(chains[c], c, level + 1, edge, others);
  }
}

Configuration SearchSpace::configuration(ConfigurationIndex index) const {
  std::vector<std::uint32_t> positions(dimensions());
  values_at(index, positions);
  Configuration result;
  result.reserve(positions.size());
  for (std::size_t p = 0; p < positions.size(); ++p) result.push_back(parameters()[p].values[positions[p]]);
  return result;
}

std::optional<ConfigurationIndex> SearchSpace::index_of(std::span<const std::uint32_t> values) const {
  if (values.size() != dimensions() || empty()) return std::nullopt;
  const auto& chains = state_->built.chains;
  ConfigurationIndex index = 0;
  Diagram::Edge edge;
  if (state_->single()) {
    const Diagram& chain = chains[0];
    Diagram::Node node = chain.root();
    for (std::size_t p = 0; p < values.size(); ++p) {
      if (!chain.edge_of(p, node, values[p], edge)) return std::nullopt;
      index += edge.before;
      node = edge.child;
    }
    return index;
  }
  SpaceCursor cursor(chains, size());
  for (std::size_t p = 0; p < values.size(); ++p) {
    const std::uint32_t c = state_->chain_of[p], level = state_->level_of[p];
    if (!chains[c].edge_of(level, cursor.node(c), values[p], edge)) return std::nullopt;
    const std::uint64_t others = cursor.others(chains[c], c, level);
    index += edge.before * others;
    cursor.step(chains[c], c, level + 1, edge, others);
  }
  return index;
}

std::optional<ConfigurationIndex> SearchSpace::index_of(const Configuration& configuration) const {
  if (configuration.size() != dimensions()) return std::nullopt;
  std::vector<std::uint32_t> positions(configuration.size());
  for (std::size_t p = 0; p < configuration.size(); ++p) {
    const auto found = state_->position_of[p].find(configuration[p]);
    if (found == state_->position_of[p].end()) return std::nullopt;
    positions[p] = found->second;
  }
  return index_of(positions);
}

std::optional<ConfigurationIndex> SearchSpace::default_configuration() const {
  Configuration configuration;
  for (const Parameter& parameter : parameters()) configuration.push_back(*parameter.default_or_first());
  return index_of(configuration);
}

std::string describe(const std::vector<Parameter>& parameters, const Configuration& configuration) {
  std::string text;
  for (std::size_t p = 0; p < configuration.size() && p < parameters.size(); ++p) {
    if (p > 0) text += ", ";
    const Value& value = configuration[p];
    const bool* truth = std::get_if<bool>(&value.data());  // as problem files write it
    text += parameters[p].name + "=" + (truth == nullptr ? value.to_string() : *truth ? "true" : "false");
  }
  return text;
}

}  // namespace ergotune
