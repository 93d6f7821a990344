#include "report/size_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "measure/metrics.hpp"
#include "problem/document/fields.hpp"
#include "report/result_document.hpp"
#include "store/formats/export.hpp"
#include "tune/session/confirmation.hpp"
#include "tune/session/single_configuration.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

Json choice_document(const SizeLoss& loss) { return {{"mean_loss", loss.mean}, {"worst_loss", loss.worst}}; }

/// A winner's parameters by name.
Constants winner_of(const RankedResults& ranked) {
  Constants values;
  for (std::size_t p = 0; p < ranked.results.parameters.size(); ++p)
    values[ranked.results.parameters[p].name] = ranked.results.rows[ranked.best.front()].configuration[p];
  return values;
}

/// What a measurement is worth in SizedResults; nullopt where it did not work.
std::optional<double> sized_value(const Objective& objective, const Measurement& measurement) {
  const auto value = objective.value(measurement);
  if (!value || !(*value > 0)) return std::nullopt;
  return objective.direction() == Direction::maximise ? 1 / *value : *value;
}

/// Measures configurations of one size in turn, in `kRounds` rounds: one that has just been confirmed and one that was
/// measured once, before the GPU was under load, are not comparable. Returns their means.
std::map<ConfigurationIndex, Measurement> side_by_side(PreparedSession& prepared,
                                                       const std::vector<ConfigurationIndex>& indices) {
  constexpr int kRounds = 3;
  std::map<ConfigurationIndex, Measurement> means;
  const auto ledger = prepared.open_ledger();
  RunInfo run;
  run.objective = prepared.objective->spec();
  run.phase = "comparing the best of all sizes";
  ledger->begin_run(run);
  ConfirmationSource source(indices, kRounds);
  const std::string why = ledger->drive(source);
  ledger->end_run(why.empty() ? "finished" : why);
  for (const ConfirmationSource::Candidate& candidate : source.candidates()) {
    std::vector<Measurement> rounds;
    for (const ConfirmationRound& round : candidate.rounds) rounds.push_back(round.measurement);
    if (!rounds.empty()) means.emplace(candidate.index, combine(rounds));
  }
  return means;
}

/// The objective of each configuration at one size; what is not known is measured. Measured values that are near the
/// best are those of side_by_side().
void measure_at(const SizedProblem& size, Provenance provenance, SizeSweep& sweep) {
  constexpr double kNear = 0.3;  // share of the best
  PreparedSession prepared = prepare_session(size.problem, size.setup);
  std::map<std::size_t, ConfigurationIndex> indices;
  double best = INFINITY;
  const std::size_t column = sweep.results.value.front().size();
  for (std::size_t c = 0; c < sweep.configurations.size(); ++c) {
    const Constants& configuration = sweep.configurations[c];
    std::optional<double>& value = sweep.results.value[c].emplace_back();
    const auto index = prepared.space->index_of(
        configuration_of({configuration.begin(), configuration.end()}, prepared.space->parameters()));
    if (!index) continue;
    value = sized_value(*prepared.objective, measure_one(prepared, *index).measurement);
    if (!value) continue;
    indices[c] = *index;
    best = std::min(best, *value);
  }
  std::vector<ConfigurationIndex> near;
  for (const auto& [c, index] : indices)
    if (*sweep.results.value[c][column] <= (1 + kNear) * best) near.push_back(index);
  if (provenance != Provenance::measured || near.size() < 2) return;
  const auto means = side_by_side(prepared, near);
  for (const auto& [c, index] : indices)
    if (const auto mean = means.find(index); mean != means.end())
      sweep.results.value[c][column] = sized_value(*prepared.objective, mean->second);
}

}  // namespace

void set_constants(Problem& problem, const Constants& size) {
  std::vector<std::string> known;
  for (const auto& [name, value] : problem.constants) known.push_back(name);
  for (const auto& [device, constants] : problem.constants_by_device)
    for (const auto& [name, value] : constants) known.push_back(name);
  for (const auto& [name, value] : size) {
    const auto& kinds = document::names_of<ParameterKind>();
    const bool is_known = std::ranges::find(known, name) != known.end();
    if (!is_known && std::find(kinds.begin() + 1, kinds.end(), name) != kinds.end())
      throw UserError(fmt::format("{0}: it is set on the device, not a constant; write {0} = {1} in [execution]", name,
                                  value.to_string()));
    if (!is_known)
      throw UserError(fmt::format("{}: the problem has no such constant{}", name, suggestion(name, known)));
    problem.constants[name] = value;
    for (auto& [device, constants] : problem.constants_by_device) constants.erase(name);
  }
}

std::string SizeSweep::why_no_answer() const {
  const RankedResults& ranked = tuned.back().ranked;
  const std::string at = fmt::format("{}: ", nlohmann::json(to_json(sizes.back())).dump());
  if (!ranked.best.empty()) return at + "an objective with a front has no single best; name one quantity";
  if (ranked.results.rows.empty()) return at + "nothing was measured";
  const Measurement& first = ranked.results.rows.front().measurement;
  return at + fmt::format("no configuration worked; the first: {}: {}", to_string(first.status), first.message);
}

std::string SizeSweep::provenance() const { return to_string(tuned.front().ranked.results.provenance); }

std::optional<double> SizeSweep::loss_at(std::size_t configuration, std::size_t size) const {
  double best = INFINITY;
  for (const auto& row : results.value)
    if (row[size]) best = std::min(best, *row[size]);
  const auto& value = results.value[configuration][size];
  return value ? std::optional(*value / best - 1) : std::nullopt;
}

SizeSweep sweep_sizes(std::vector<SizedProblem> sizes, std::size_t leaves, bool worst_case,
                      const std::function<TunedSession(const SizedProblem&)>& search) {
  SizeSweep sweep;
  for (SizedProblem& size : sizes) {
    if (size.setup.run.store.empty())
      throw UserError("several sizes need a store, from which each starts with the others");
    if (!size.problem.run.plan.empty()) throw UserError("plans are compared at one size: give one value");
    if (!sweep.tuned.empty() && size.options.prior.empty()) size.options.prior = size.setup.run.prior = {"auto"};
    sweep.sizes.push_back(size.size);
    const RankedResults& ranked = sweep.tuned.emplace_back(search(size)).ranked;
    if (ranked.best.empty() || ranked.objective.kind() == Objective::Kind::pareto) return sweep;
    const Constants winner = winner_of(ranked);
    if (std::ranges::find(sweep.configurations, winner) == sweep.configurations.end())
      sweep.configurations.push_back(winner);
    if (size.options.interrupted && size.options.interrupted->load()) break;
  }
  for (const auto& [name, value] : sweep.sizes.front()) sweep.results.names.push_back(name);
  sweep.results.value.resize(sweep.configurations.size());
  for (std::size_t s = 0; s < sweep.sizes.size(); ++s) {
    std::vector<double>& values = sweep.results.sizes.emplace_back();
    for (const auto& [name, value] : sweep.sizes[s]) values.push_back(value.as_real());
    measure_at(sizes[s], sweep.tuned[s].ranked.results.provenance, sweep);
  }
  sweep.over = best_over_sizes(sweep.results, worst_case);
  sweep.tree = size_tree(sweep.results, leaves, worst_case);
  return sweep;
}

Json sweep_document(const SizeSweep& sweep) {
  Json document{{"sizes", Json::array()}, {"one_for_all", nullptr}, {"tree", nullptr}};
  for (std::size_t s = 0; s < sweep.sizes.size(); ++s)
    document["sizes"].push_back({{"constants", to_json(sweep.sizes[s])}, {"result", result_document(sweep.tuned[s])}});
  if (sweep.over) {
    document["one_for_all"] = choice_document(*sweep.over);
    document["one_for_all"]["configuration"] = to_json(sweep.configurations[sweep.over->configuration]);
  }
  if (!sweep.tree) return document;
  document["tree"] = choice_document(*sweep.tree);
  Json& nodes = document["tree"]["nodes"] = Json::array();
  for (const SizeTree::Node& node : sweep.tree->nodes) {
    if (node.constant)
      nodes.push_back({{"constant", sweep.results.names[*node.constant]},
                       {"at_most", node.at_most},
                       {"below", node.below},
                       {"above", node.above}});
    else
      nodes.push_back({{"configuration", to_json(sweep.configurations[node.configuration])}});
  }
  return document;
}

void require_tree_ending(const std::filesystem::path& file) {
  if (std::ranges::count(std::array{".hpp", ".hh", ".h", ".cuh", ".py"}, file.extension()) == 0)
    throw UserError(fmt::format(
        "tree: {} is neither C++ nor Python; name a file that ends in .hpp, .hh, .h or .cuh (C++) or in .py (Python)",
        file.string()));
}

void write_tree(const SizeSweep& sweep, const std::filesystem::path& file) {
  const auto& tree = sweep.tree;
  if (!tree) throw UserError("tree: no configurations were found that work at every size");
  const RankedResults& first = sweep.tuned.front().ranked;
  std::string about = fmt::format("Made by ergotune: {} of {} on {}; {} values, mean loss {:.2f} %, worst {:.2f} %",
                                  first.objective.title(), first.results.problem, first.results.device_name,
                                  sweep.provenance(), 100 * tree->mean, 100 * tree->worst);
  std::vector<Constants> configurations = sweep.configurations;
  const bool python = file.extension() == ".py";
  if (!python)
    for (Constants& configuration : configurations) {
      Constants named;
      for (const auto& [name, value] : configuration) named[c_identifier(name)] = value;
      if (named != configuration && &configuration == &configurations.front())
        about += "; the parameter NAME of one KERNEL is KERNEL_NAME";
      configuration = std::move(named);
    }
  const std::string text =
      (python ? tree_as_python : tree_as_cpp)(*tree, sweep.results, first.results.problem, configurations, about);
  if (const int error = write_file(file, text); error != 0)
    throw UserError(fmt::format("tree: {} cannot be written: {}", file.string(), std::strerror(error)));
}

}  // namespace ergotune
