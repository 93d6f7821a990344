#include "cli/verbs/tune_sizes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/table.hpp"
#include "ergotune/error.hpp"
#include "report/result_document.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Constants& constants) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : constants) parts.push_back(fmt::format("{}={}", name, value.to_string()));
  return fmt::format("{}", fmt::join(parts, ", "));
}

Json json_of(const Constants& constants) {
  Json document = Json::object();
  for (const auto& [name, value] : constants)
    std::visit([&, key = name](const auto& plain) { document[key] = plain; }, value.data());
  return document;
}

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string provenance_of(const SizeSweep& sweep) { return to_string(sweep.tuned.front().ranked.results.provenance); }

/// Loss of a configuration at a size; empty where it does not work there.
std::optional<double> loss_at(const SizedResults& results, std::size_t configuration, std::size_t size) {
  double best = INFINITY;
  for (const auto& row : results.value)
    if (row[size]) best = std::min(best, *row[size]);
  const auto& value = results.value[configuration][size];
  return value ? std::optional(*value / best - 1) : std::nullopt;
}

Json choice_document(const SizeLoss& loss) { return {{"mean_loss", loss.mean}, {"worst_loss", loss.worst}}; }

}  // namespace

Constants winner_of(const RankedResults& ranked) {
  Constants values;
  for (std::size_t p = 0; p < ranked.results.parameters.size(); ++p)
    values[ranked.results.parameters[p].name] = ranked.results.rows[ranked.best.front()].configuration[p];
  return values;
}

std::optional<double> sized_value(const Objective& objective, const Measurement& measurement) {
  const auto value = objective.value(measurement);
  if (!value || !(*value > 0)) return std::nullopt;
  return objective.direction() == Direction::maximise ? 1 / *value : *value;
}

void print_sweep(const SizeSweep& sweep, std::size_t leaves, bool worst_case) {
  const SizedResults& results = sweep.results;
  const auto over = best_over_sizes(results, worst_case);
  const auto tree = size_tree(results, leaves, worst_case);
  const Objective& objective = sweep.tuned.front().ranked.objective;
  Table table({"size", objective.name(), "one for all", "tree", "best configuration"});
  for (const std::size_t left : {0, 4}) table.align_left(left);
  const auto loss = [&](std::size_t configuration, std::size_t size) {
    const auto share = loss_at(results, configuration, size);
    return share ? "+" + percent(*share) : "fails";
  };
  for (std::size_t s = 0; s < sweep.sizes.size(); ++s) {
    const RankedResults& ranked = sweep.tuned[s].ranked;
    table.add({text_of(sweep.sizes[s]), human(*ranked.value(ranked.best.front()), objective.unit()),
               over ? loss(over->configuration, s) : "-", tree ? loss(tree->choose(results.sizes[s]), s) : "-",
               ranked.configuration_text(ranked.best.front())});
  }
  fmt::print("Best of each size ({}), and what one configuration for all of them and the tree lose\n{}",
             provenance_of(sweep), table.to_string(2, terminal_width()));
  if (over)
    fmt::print("\nOne for all sizes: {}\n  mean loss {}, worst {}\n",
               text_of(sweep.configurations[over->configuration]), percent(over->mean), percent(over->worst));
  else
    fmt::print("\nNo configuration that was best at a size works at all of them.\n");
  if (tree)
    fmt::print("\nTree of {}: mean loss {}, worst {}\n", counted(tree->leaves, "configuration"), percent(tree->mean),
               percent(tree->worst));
}

Json sweep_document(const SizeSweep& sweep, std::size_t leaves, bool worst_case) {
  Json document{{"sizes", Json::array()}, {"one_for_all", nullptr}, {"tree", nullptr}};
  for (std::size_t s = 0; s < sweep.sizes.size(); ++s)
    document["sizes"].push_back({{"constants", json_of(sweep.sizes[s])}, {"result", result_document(sweep.tuned[s])}});
  if (const auto over = best_over_sizes(sweep.results, worst_case)) {
    document["one_for_all"] = choice_document(*over);
    document["one_for_all"]["configuration"] = json_of(sweep.configurations[over->configuration]);
  }
  const auto tree = size_tree(sweep.results, leaves, worst_case);
  if (!tree) return document;
  document["tree"] = choice_document(*tree);
  Json& nodes = document["tree"]["nodes"] = Json::array();
  for (const SizeTree::Node& node : tree->nodes) {
    if (node.constant)
      nodes.push_back({{"constant", sweep.results.names[*node.constant]},
                       {"at_most", node.at_most},
                       {"below", node.below},
                       {"above", node.above}});
    else
      nodes.push_back({{"configuration", json_of(sweep.configurations[node.configuration])}});
  }
  return document;
}

void write_tree(const SizeSweep& sweep, std::size_t leaves, bool worst_case, const std::filesystem::path& file) {
  const auto tree = size_tree(sweep.results, leaves, worst_case);
  if (!tree) throw UserError("--tree: no configurations were found that work at every size");
  const RankedResults& first = sweep.tuned.front().ranked;
  const std::string about =
      fmt::format("Made by ergotune tune --set: {} of {} on {}; {} values, mean loss {}, worst {}",
                  first.objective.title(), first.results.problem, first.results.device_name, provenance_of(sweep),
                  percent(tree->mean), percent(tree->worst));
  const auto write = file.extension() == ".py" ? tree_as_python : tree_as_cpp;
  const std::string text = write(*tree, sweep.results, first.results.problem, sweep.configurations, about);
  if (const int error = write_file(file, text); error != 0)
    throw UserError(fmt::format("--tree: {} cannot be written: {}", file.string(), std::strerror(error)));
}

}  // namespace ergotune::cli
