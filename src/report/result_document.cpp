#include "report/result_document.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"
#include "store/sqlite/store.hpp"

extern "C" const char ergotune_embedded_result_schema[];

namespace ergotune {

using Json = nlohmann::ordered_json;

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_json(const Value& value) {
  return std::visit([](const auto& v) { return Json(v); }, value.data());
}

Json to_json(const Constants& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) object[name] = to_json(value);
  return object;
}

Json to_json(const std::vector<Parameter>& parameters, const Configuration& configuration) {
  Json object = Json::object();
  for (std::size_t i = 0; i < std::min(parameters.size(), configuration.size()); ++i) {
    object[parameters[i].name] = to_json(configuration[i]);
  }
  return object;
}

Json to_json(const Measurement& measurement) {
  Json quantities = Json::object();
  for (const auto& [name, quantity] : measurement.quantities) {
    Json entry{{"value", number_or_null(quantity.value)},
               {"standard_error", number_or_null(quantity.standard_error)},
               {"half_width", number_or_null(quantity.half_width())},
               {"n", quantity.n},
               {"method", quantity.method}};
    if (!quantity.sensor.empty()) entry["sensor"] = quantity.sensor;
    entry["provenance"] = to_string(quantity.provenance);
    quantities[name] = std::move(entry);
  }
  Json metrics = Json::object();
  for (const auto& [name, value] : measurement.metrics) metrics[name] = number_or_null(value);
  Json document{{"status", to_string(measurement.status)},
                {"quantities", std::move(quantities)},
                {"metrics", std::move(metrics)}};
  if (!measurement.message.empty()) document["message"] = measurement.message;
  if (!measurement.warnings.empty()) document["warnings"] = measurement.warnings;
  return document;
}

namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json device_shares_document(const SessionResult& result) {
  Json list = Json::array();
  for (const DeviceResult& gpu : result.gpus) {
    Json document{{"device", gpu.gpu},
                  {"id", gpu.id},
                  {"name", gpu.name},
                  {"lost", gpu.lost},
                  {"measured", gpu.results},
                  {"busy_seconds", gpu.busy_seconds},
                  {"idle_seconds", gpu.idle_seconds}};
    for (const auto& [name, factor] : gpu.factors)
      document["factors"][name] = {{"value", factor.value}, {"standard_error", factor.standard_error}, {"n", factor.n}};
    list.push_back(std::move(document));
  }
  return list;
}

Json objective_document(const Objective& objective) {
  return {{"name", objective.name()},
          {"direction", objective.direction() == Direction::maximise ? "max" : "min"},
          {"unit", objective.unit()},
          {"quantity", objective.quantity()},
          {"pareto", objective.kind() == Objective::Kind::pareto}};
}

void add_confidence(Json& best, const Confidence& confidence) {
  if (confidence.probability_best) best["probability_best"] = *confidence.probability_best;
  if (confidence.expected_loss) best["expected_loss"] = *confidence.expected_loss;
}

Json failures_document(const RankedResults& ranked) {
  Json list = Json::array();
  for (const FailureGroup& failure : ranked.failures())
    list.push_back(
        {{"status", to_string(failure.status)},
         {"count", failure.count},
         {"message", failure.message},
         {"configuration", to_json(ranked.results.parameters, ranked.results.rows[failure.first].configuration)}});
  return list;
}

Json point_document(const PlanPoint& point, const std::vector<Parameter>& parameters) {
  Json document{{"configuration", to_json(parameters, point.configuration)}};
  document.update(to_json(point.measurement));
  return document;
}

Json plan_document(const PlanResult& result, const std::vector<Parameter>& parameters) {
  const auto point = [&](const std::optional<PlanPoint>& found) {
    return found ? point_document(*found, parameters) : Json(nullptr);
  };
  Json document{{"plan", result.plan},
                {"summary", result.summary},
                {"asked", result.requested},
                {"evaluated", result.evaluated},
                {"known", result.known},
                {"cost_seconds", result.seconds},
                {"true_energy", or_null(result.true_energy)},
                {"above_optimum_percent", or_null(result.above_optimum_percent)},
                {"best", point(result.best)}};
  if (result.best) {
    document["best"]["confirmation_repeats"] = result.confirmation_repeats;
    add_confidence(document["best"], result);
  }
  if (!result.why_not.empty()) document["why_not"] = result.why_not;
  document["notes"] = result.notes;
  document["stages"] = Json::array();
  for (const StageResult& stage : result.stages) {
    Json settings = Json::array();
    for (const PlanPoint& one : stage.by_setting) settings.push_back(point_document(one, parameters));
    document["stages"].push_back({{"stage", stage.name},
                                  {"objective", stage.objective},
                                  {"strategy", stage.strategy},
                                  {"space", stage.space},
                                  {"asked", stage.requested},
                                  {"evaluated", stage.evaluated},
                                  {"best", point(stage.best)},
                                  {"by_setting", std::move(settings)}});
  }
  if (!result.model) return document;
  Json& model = document["model"] = {{"ridge_mhz", nullptr}, {"range_mhz", nullptr}, {"removed_share", nullptr}};
  if (result.model->found) model["ridge_mhz"] = result.model->ridge_mhz.value;
  if (!result.model_range) return document;
  model["range_mhz"] = {result.model_range->low_mhz, result.model_range->high_mhz};
  model["removed_share"] = result.model_range->removed_share;
  return document;
}

}  // namespace

const char* result_schema() { return ergotune_embedded_result_schema; }

Json row_document(const RankedResults& ranked, std::size_t row) {
  const StoredRow& result = ranked.results.rows[row];
  Json document{{"row", row}, {"configuration", to_json(ranked.results.parameters, result.configuration)}};
  document.update(to_json(result.measurement));
  if (const auto value = ranked.value(row)) {
    document["objective"] = *value;
    if (const double half_width = result.measurement.half_width(ranked.objective.quantity()); half_width > 0)
      document["half_width"] = number_or_null(half_width);
  }
  document["confirmation_repeats"] = result.rounds;
  if (ranked.objective.violates_condition(result.measurement)) document["violates_condition"] = true;
  if (!result.gpu.empty()) document["device"] = result.gpu;
  if (const auto behind = ranked.unconfirmed(row))
    document["unconfirmed"] = {{"expected", behind->expected}, {"expected_gain", behind->expected_gain}};
  return document;
}

Json results_document(const RankedResults& ranked, std::size_t top) {
  const ResultSet& results = ranked.results;
  const bool stored = !results.store.empty();
  Json document{{"version", kResultDocumentVersion},
                {"ergotune", ERGOTUNE_VERSION},
                {"problem", results.problem},
                {"attributes", to_json(results.attributes)},
                {"device", results.device_id},
                {"device_name", results.device_name},
                {"provenance", to_string(results.provenance)},
                {"objective", objective_document(ranked.objective)},
                {"store", stored ? Json(results.store.string()) : Json(nullptr)},
                {"session", stored ? Json(results.session) : Json(nullptr)},
                {"differing_constants", to_json(results.size)},
                {"space", or_null(results.space)},
                {"rows", results.rows.size()},
                {"statuses", ranked.statuses}};
  document["best"] = ranked.best.empty() ? Json(nullptr) : row_document(ranked, ranked.best.front());
  add_confidence(document["best"], ranked.confidence);
  document["default"] = ranked.default_row ? row_document(ranked, *ranked.default_row) : Json(nullptr);
  document["gain"] = nullptr;
  if (const auto gain = ranked.gain_over_default())
    document["gain"] = {{"value", gain->factor},
                        {"half_width", gain->half_width > 0 ? Json(gain->half_width) : Json(nullptr)}};
  document["median"] = or_null(ranked.median);
  document["top"] = Json::array();
  for (std::size_t i = 0; i < std::min(top, ranked.best.size()); ++i)
    document["top"].push_back(row_document(ranked, ranked.best[i]));
  if (const Repeats& repeats = ranked.confidence.search_repeats; repeats.n > 0)
    document["search_repeats"] = {{"factor", repeats.factor},
                                  {"deviation", repeats.deviation},
                                  {"n", repeats.n},
                                  {"note", repeats_note(repeats, ranked.confidence.confirmation_repeats)}};
  document["failures"] = failures_document(ranked);
  document["notes"] = ranked.notes();
  if (const std::uint64_t screened = ranked.screened(); screened > 0) document["screened"] = screened;
  return document;
}

Json result_document(const RankedResults& ranked, std::size_t top) {
  Json document = results_document(ranked, top);
  document["importance"] = importance_document(ranked.results.parameters, ranked.importance());
  return document;
}

Json stored_document(const RankedResults& ranked, const std::filesystem::path& source, std::size_t top) {
  Json document = result_document(ranked, top);
  document["source"] = source.string();
  if (!is_store(source)) return document;
  Json& sessions = document["sessions"] = Json::array();
  const Store store = Store::open(source, true);
  for (const SessionInfo& info : store.sessions()) {
    sessions.push_back({{"session", info.id},
                        {"problem", info.problem},
                        {"device", info.device},
                        {"differing_constants", to_json(info.constants)},
                        {"objective", info.objective.text},
                        {"provenance", to_string(info.provenance)},
                        {"rows", store.configurations(info.id)},
                        {"created_at", iso_time(info.created_at)}});
  }
  return document;
}

Json result_document(const TunedSession& tuned) {
  const SessionResult& run = tuned.run;
  Json document = result_document(tuned.ranked, tuned.ranked.shown().size());
  document["evaluated"] = run.evaluated;
  document["resumed"] = run.resumed;
  document["retried"] = run.retried;
  document["disturbed"] = run.disturbed;
  if (!run.gpus.empty()) document["devices"] = device_shares_document(run);
  document["strategy"] = run.strategy;
  if (!run.explanation.empty()) document["explanation"] = run.explanation;
  document["stopped_because"] = run.stopped_because;
  document["seconds"] = run.seconds;
  document["waited_seconds"] = run.waited;
  document["tuner_seconds"] = run.tuner_seconds;
  Json notes = tuned.notes;  // as they are printed: those from before the search come first
  for (const Json& note : document["notes"]) notes.push_back(note);
  for (const std::string& note : tuned.findings) notes.push_back(note);
  document["notes"] = std::move(notes);
  return document;
}

Json plans_document(const PreparedSession& prepared, const PlanComparison& comparison) {
  Json document{{"version", kResultDocumentVersion},
                {"ergotune", ERGOTUNE_VERSION},
                {"problem", comparison.problem},
                {"device", prepared.device.id},
                {"device_name", prepared.device.name},
                {"provenance", to_string(comparison.provenance)},
                {"store", prepared.store ? Json(prepared.store->file().string()) : Json(nullptr)},
                {"session", prepared.store ? Json(prepared.store_session) : Json(nullptr)},
                {"space", comparison.space},
                {"notes", prepared.notes},
                {"optimum_energy", or_null(comparison.optimum)},
                {"plans", Json::array()}};
  for (const PlanResult& plan : comparison.plans)
    document["plans"].push_back(plan_document(plan, prepared.space->parameters()));
  return document;
}

}  // namespace ergotune
