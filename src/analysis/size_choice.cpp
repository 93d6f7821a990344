#include "analysis/size_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

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

/// The best trees of few leaves over sets of sizes that splits lead to, by dynamic programming: a split that gains
/// nothing by itself may be the first of two that do.
class BestTrees {
 public:
  struct Plan {
    double cost = 0;                      ///< what the leaves add to what is minimised
    OverSizes choice;                     ///< of a leaf
    std::optional<std::size_t> constant;  ///< none: a leaf
    double at_most = 0;
    Sizes below, above;
    std::size_t leaves_below = 0, leaves_above = 0;
  };

  BestTrees(const SizedResults& results, const std::vector<double>& best, bool worst_case)
      : results_(results), best_(best), worst_case_(worst_case) {}

  /// The best plan of at most `leaves` leaves.
  const Plan& plan(const Sizes& at, std::size_t leaves) {
    leaves = std::min(leaves, at.size());
    if (const auto known = plans_.find({at, leaves}); known != plans_.end()) return known->second;
    Plan best;
    if (leaves == 1) {
      best.choice = best_at(results_, best_, at, worst_case_);
      best.cost = static_cast<double>(at.size()) * (worst_case_ ? best.choice.worst : best.choice.mean);
    } else {
      best = plan(at, leaves - 1);
      for (std::size_t c = 0; c < results_.names.size(); ++c) split(at, c, leaves, best);
    }
    return plans_[{at, leaves}] = std::move(best);
  }

  /// Adds the plan's nodes below `node`.
  void write(const Sizes& at, std::size_t leaves, std::size_t node, SizeTree& tree) {
    const Plan& best = plan(at, leaves);
    if (!best.constant) {
      tree.nodes[node].configuration = best.choice.configuration;
      tree.mean += best.choice.mean * static_cast<double>(at.size()) / static_cast<double>(best_.size());
      tree.worst = std::max(tree.worst, best.choice.worst);
      ++tree.leaves;
      return;
    }
    const std::size_t below = tree.nodes.size(), above = below + 1;
    tree.nodes[node] = {best.constant, best.at_most, below, above, 0};
    tree.nodes.resize(tree.nodes.size() + 2);
    write(best.below, best.leaves_below, below, tree);
    write(best.above, best.leaves_above, above, tree);
  }

 private:
  /// Replaces the plan by the best that first splits at a value of a constant, where that costs less.
  void split(const Sizes& at, std::size_t constant, std::size_t leaves, Plan& best) {
    std::vector<double> values;
    for (const std::size_t s : at) values.push_back(results_.sizes[s][constant]);
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    for (std::size_t v = 1; v < values.size(); ++v) {
      Sizes below, above;
      for (const std::size_t s : at) (results_.sizes[s][constant] <= values[v - 1] ? below : above).push_back(s);
      // halfway in doublings, where sizes are positive
      const double at_most = values[v - 1] > 0 ? std::floor(std::sqrt(values[v - 1] * values[v])) : values[v - 1];
      for (std::size_t left = 1; left < leaves; ++left)
        if (const double cost = plan(below, left).cost + plan(above, leaves - left).cost; cost < best.cost)
          best = {cost, {}, constant, at_most, below, above, left, leaves - left};
    }
  }

  const SizedResults& results_;
  const std::vector<double>& best_;
  const bool worst_case_;
  std::map<std::pair<Sizes, std::size_t>, Plan> plans_;
};

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
  BestTrees trees(results, best, worst_case);
  const Sizes sizes = all(results);
  std::size_t leaves = 1;
  const double worthwhile = kWorthwhile * static_cast<double>(sizes.size());
  for (std::size_t more = 2; more <= std::min(most, sizes.size()); ++more)
    if (trees.plan(sizes, leaves).cost - trees.plan(sizes, more).cost > static_cast<double>(more - leaves) * worthwhile)
      leaves = more;
  SizeTree tree;
  tree.nodes.emplace_back();
  trees.write(sizes, leaves, 0, tree);
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
