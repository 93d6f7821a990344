#include "report/result_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/result_json.hpp"
#include "search/importance.hpp"
#include "tune/plans/device_model.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

Json configuration_document(const PreparedSession& prepared, const ConfigurationResult& result) {
  Json document{{"configuration", to_json(prepared.space->parameters(), prepared.space->configuration(result.index))}};
  document.update(to_json(result.measurement));
  if (const auto value = prepared.objective->value(result.measurement)) document["objective"] = *value;
  document["confirmation_repeats"] = result.rounds;
  if (!result.board.empty()) document["board"] = result.board;
  return document;
}

Json device_shares_document(const SessionResult& result) {
  Json list = Json::array();
  for (const DeviceResult& board : result.boards) {
    Json document{{"board", board.board},
                  {"id", board.id},
                  {"name", board.name},
                  {"lost", board.lost},
                  {"measured", board.results},
                  {"busy_seconds", board.busy_seconds},
                  {"idle_seconds", board.idle_seconds}};
    for (const auto& [name, factor] : board.factors)
      document["factors"][name] = {{"value", factor.value}, {"standard_error", factor.standard_error}, {"n", factor.n}};
    list.push_back(std::move(document));
  }
  return list;
}

}  // namespace

nlohmann::ordered_json unconfirmed_document(const Unconfirmed& result) {
  return {{"expected", result.expected}, {"expected_gain", result.expected_gain}};
}

nlohmann::ordered_json repeats_document(const Repeats& repeats) {
  return {{"factor", repeats.factor}, {"deviation", repeats.deviation}, {"n", repeats.n}};
}

/// Of an entry that reads better than the confirmed winner and stands behind it.
std::optional<Unconfirmed> unconfirmed_behind(const PreparedSession& prepared, const SessionResult& result,
                                              const ConfigurationResult& entry) {
  if (result.confirmation_repeats == 0 || entry.confirmed_for == prepared.objective->spec()) return std::nullopt;
  return unconfirmed(*prepared.objective, entry.measurement, result.best.front().measurement, result.search_repeats);
}

/// Where the best clock is an end of what the model suggests: the optimum of this kernel may lie beyond. Empty
/// elsewhere.
std::string note_of_model_edge(const PreparedSession& prepared, const SessionResult& result) {
  if (!prepared.device_model || result.best.empty()) return {};
  const auto& parameters = prepared.space->parameters();
  const Configuration best = prepared.space->configuration(result.best.front().index);
  const auto& supported = prepared.device_model->sampling.supported_mhz;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].kind != ParameterKind::core_clock_mhz || parameters[i].values.size() < 2 || supported.empty())
      continue;
    const auto [low, high] =
        std::minmax_element(parameters[i].values.begin(), parameters[i].values.end(),
                            [](const Value& a, const Value& b) { return a.as_real() < b.as_real(); });
    const double clock = best[i].as_real();
    const bool at_low = clock == low->as_real() && clock > supported.front() + 0.5;
    const bool at_high = clock == high->as_real() && clock < supported.back() - 0.5;
    if (at_low || at_high)
      return fmt::format(
          "the best clock, {:.0f} MHz, is the {} that the model of the device suggests: this kernel's optimum may lie "
          "beyond; {} = \"all\" looks there",
          clock, at_low ? "lowest" : "highest", parameters[i].name);
  }
  return {};
}

Json result_document(const PreparedSession& prepared, const SessionResult& result) {
  const Objective& objective = *prepared.objective;
  Json document{
      {"version", kResultDocumentVersion},
      {"problem", prepared.problem.name},
      {"device", prepared.device.id},
      {"device_name", prepared.device.name},
      {"provenance", to_string(prepared.evaluator->provenance())},
      {"objective",
       {{"name", objective.name()}, {"direction", objective.direction() == Direction::maximise ? "max" : "min"}}},
      {"best", nullptr},
  };
  if (!result.best.empty()) document["best"] = configuration_document(prepared, result.best.front());
  if (result.probability_best) document["best"]["probability_best"] = *result.probability_best;
  if (result.expected_loss) document["best"]["expected_loss"] = *result.expected_loss;
  document["default"] =
      result.default_result ? configuration_document(prepared, *result.default_result) : Json(nullptr);
  document["median"] = result.median_value ? Json(*result.median_value) : Json(nullptr);
  Json top = Json::array();
  for (const ConfigurationResult& entry : result.best) {
    top.push_back(configuration_document(prepared, entry));
    if (const auto behind = unconfirmed_behind(prepared, result, entry))
      top.back()["unconfirmed"] = unconfirmed_document(*behind);
  }
  document["top"] = std::move(top);
  if (result.search_repeats.n > 0) document["search_repeats"] = repeats_document(result.search_repeats);
  document["evaluated"] = result.evaluated;
  document["resumed"] = result.resumed;
  document["retried"] = result.retried;
  document["space"] = prepared.space->size();
  document["statuses"] = result.statuses;
  document["disturbed"] = result.disturbed;
  if (!result.commonest_failure.empty()) {
    document["commonest_failure"] = {{"message", result.commonest_failure},
                                     {"words", result.commonest_failure_message},
                                     {"count", result.commonest_failure_count}};
  }
  if (!result.boards.empty()) document["boards"] = device_shares_document(result);
  document["importance"] = importance_document(prepared.space->parameters(), result.importance);
  document["strategy"] = result.strategy;
  if (!result.explanation.empty()) document["explanation"] = result.explanation;
  document["stopped_because"] = result.stopped_because;
  document["confirmation_repeats"] = result.confirmation_repeats;
  document["seconds"] = result.seconds;
  document["tuner_seconds"] = result.tuner_seconds;
  document["notes"] = prepared.notes;
  if (const std::string note = note_of_model_edge(prepared, result); !note.empty()) document["notes"].push_back(note);
  document["store"] = prepared.store ? Json(prepared.store->file().string()) : Json(nullptr);
  document["session"] = prepared.store ? Json(prepared.store_session) : Json(nullptr);
  return document;
}

}  // namespace ergotune
