#include "analysis/size_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ergotune {
namespace {

/// Of the mean loss, below which another leaf is not worth it.
constexpr double kWorthwhile = 0.001;
/// The loss of a configuration at a size where it does not work.
constexpr double kFails = 1e6;

using Sizes = std::vector<std::size_t>;

std::vector<double> best_of_sizes(const SizedResults& results) {
  std::vector<double> best(results.sizes.size(), INFINITY);
  for (const auto& row : results.value)
    for (std::size_t s = 0; s < best.size(); ++s)
      if (row[s]) best[s] = std::min(best[s], *row[s]);
  return best;
}

SizeLoss loss_of(const SizedResults& results, const std::vector<double>& best, std::size_t configuration,
                 const Sizes& at) {
  SizeLoss loss;
  for (const std::size_t s : at) {
    const auto value = results.value[configuration][s];
    const double here = value ? *value / best[s] - 1 : kFails;
    loss.mean += here / static_cast<double>(at.size());
    loss.worst = std::max(loss.worst, here);
  }
  return loss;
}

OverSizes best_at(const SizedResults& results, const std::vector<double>& best, const Sizes& at, bool worst_case) {
  OverSizes found;
  found.mean = found.worst = INFINITY;
  for (std::size_t c = 0; c < results.value.size(); ++c) {
    const SizeLoss loss = loss_of(results, best, c, at);
    if (worst_case ? loss.worst < found.worst : loss.mean < found.mean) found = {{loss.mean, loss.worst}, c};
  }
  return found;
}

Sizes all(const SizedResults& results) {
  Sizes list(results.sizes.size());
  std::iota(list.begin(), list.end(), std::size_t{0});
  return list;
}

struct Leaf {
  std::size_t node = 0;
  Sizes sizes;
  OverSizes choice;
};

/// What a leaf adds to what is minimised.
double cost(const Leaf& leaf, bool worst_case) {
  return static_cast<double>(leaf.sizes.size()) * (worst_case ? leaf.choice.worst : leaf.choice.mean);
}

struct Split {
  double gain = 0;
  std::size_t leaf = 0, constant = 0;
  double at_most = 0;
  Leaf below, above;
};

Split best_split(const SizedResults& results, const std::vector<double>& best, const std::vector<Leaf>& leaves,
                 bool worst_case) {
  Split found;
  for (std::size_t l = 0; l < leaves.size(); ++l)
    for (std::size_t c = 0; c < results.names.size(); ++c) {
      std::vector<double> values;
      for (const std::size_t s : leaves[l].sizes) values.push_back(results.sizes[s][c]);
      std::ranges::sort(values);
      values.erase(std::unique(values.begin(), values.end()), values.end());
      for (std::size_t v = 1; v < values.size(); ++v) {
        Split split{0, l, c, 0, {}, {}};
        // halfway in doublings, where sizes are positive
        split.at_most = values[v - 1] > 0 ? std::floor(std::sqrt(values[v - 1] * values[v])) : values[v - 1];
        for (const std::size_t s : leaves[l].sizes)
          (results.sizes[s][c] <= values[v - 1] ? split.below : split.above).sizes.push_back(s);
        for (Leaf* part : {&split.below, &split.above}) part->choice = best_at(results, best, part->sizes, worst_case);
        split.gain = cost(leaves[l], worst_case) - cost(split.below, worst_case) - cost(split.above, worst_case);
        if (split.gain > found.gain) found = split;
      }
    }
  return found;
}

std::string literal(const Value& value, bool python) {
  if (value.is_bool())
    return python ? (value.as_real() != 0 ? "True" : "False") : (value.as_real() != 0 ? "true" : "false");
  if (value.is_string()) return fmt::format("\"{}\"", value.to_string());
  return value.to_string();
}

}  // namespace

std::optional<OverSizes> best_over_sizes(const SizedResults& results, bool worst_case) {
  const OverSizes found = best_at(results, best_of_sizes(results), all(results), worst_case);
  return found.worst < kFails ? std::optional(found) : std::nullopt;
}

std::size_t SizeTree::choose(const std::vector<double>& size) const {
  std::size_t at = 0;
  while (nodes[at].constant) at = size[*nodes[at].constant] <= nodes[at].at_most ? nodes[at].below : nodes[at].above;
  return nodes[at].configuration;
}

std::optional<SizeTree> size_tree(const SizedResults& results, std::size_t most, bool worst_case) {
  const std::vector<double> best = best_of_sizes(results);
  if (best.empty() || std::ranges::any_of(best, [](double b) { return !std::isfinite(b); })) return std::nullopt;
  SizeTree tree;
  tree.nodes.emplace_back();
  std::vector<Leaf> leaves{{0, all(results), best_at(results, best, all(results), worst_case)}};
  while (leaves.size() < most) {
    Split split = best_split(results, best, leaves, worst_case);
    if (!(split.gain > kWorthwhile * static_cast<double>(best.size()))) break;
    const std::size_t node = leaves[split.leaf].node;
    split.below.node = tree.nodes.size();
    split.above.node = tree.nodes.size() + 1;
    tree.nodes[node] = {split.constant, split.at_most, split.below.node, split.above.node, 0};
    tree.nodes.resize(tree.nodes.size() + 2);
    leaves[split.leaf] = std::move(split.below);
    leaves.push_back(std::move(split.above));
  }
  tree.leaves = leaves.size();
  for (const Leaf& leaf : leaves) {
    tree.nodes[leaf.node].configuration = leaf.choice.configuration;
    const double share = static_cast<double>(leaf.sizes.size()) / static_cast<double>(best.size());
    tree.mean += share * leaf.choice.mean;
    tree.worst = std::max(tree.worst, leaf.choice.worst);
  }
  return tree.worst < kFails ? std::optional(tree) : std::nullopt;
}

namespace {

void write_node(std::string& out, const SizeTree& tree, std::size_t at, std::size_t depth, bool python,
                const SizedResults& results, const std::vector<Constants>& configurations) {
  const SizeTree::Node& node = tree.nodes[at];
  const std::string indent((python ? 4 : 2) * depth, ' ');
  if (node.constant) {
    out += fmt::format("{}if {}{} <= {:.17g}{}\n", indent, python ? "" : "(", results.names[*node.constant],
                       node.at_most, python ? ":" : ") {");
    write_node(out, tree, node.below, depth + 1, python, results, configurations);
    if (!python) out += indent + "}\n";
    return write_node(out, tree, node.above, depth, python, results, configurations);
  }
  std::vector<std::string> values;
  for (const auto& [name, value] : configurations[node.configuration])
    values.push_back(python ? fmt::format("\"{}\": {}", name, literal(value, true)) : literal(value, false));
  out += fmt::format("{}return {{{}}}{}\n", indent, fmt::join(values, ", "), python ? "" : ";");
}

std::string identifier(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

}  // namespace

std::string tree_as_cpp(const SizeTree& tree, const SizedResults& results, const std::string& name,
                        const std::vector<Constants>& configurations, const std::string& about) {
  const std::string type = identifier(name) + "_configuration";
  std::string out = fmt::format("// {}\n#pragma once\n\nstruct {} {{\n", about, type);
  for (const auto& [parameter, value] : configurations.front())
    out += fmt::format("  {}{};\n",
                       value.is_bool()      ? "bool "
                       : value.is_string()  ? "const char* "
                       : value.is_integer() ? "long long "
                                            : "double ",
                       parameter);
  std::vector<std::string> arguments;
  for (const std::string& constant : results.names) arguments.push_back("double " + constant);
  out += fmt::format("}};\n\ninline {} choose_{}({}) {{\n", type, identifier(name), fmt::join(arguments, ", "));
  write_node(out, tree, 0, 1, false, results, configurations);
  return out + "}\n";
}

std::string tree_as_python(const SizeTree& tree, const SizedResults& results, const std::string& name,
                           const std::vector<Constants>& configurations, const std::string& about) {
  std::string out =
      fmt::format("# {}\n\n\ndef choose_{}({}):\n", about, identifier(name), fmt::join(results.names, ", "));
  write_node(out, tree, 0, 1, true, results, configurations);
  return out;
}

}  // namespace ergotune
