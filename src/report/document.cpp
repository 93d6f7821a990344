#include "report/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/json_depth.hpp"
#include "base/statistics.hpp"
#include "ergotune/error.hpp"
#include "problem/tables/quantity.hpp"
#include "report/analysis_section.hpp"
#include "search/importance.hpp"
#include "search/known_names.hpp"
#include "search/ranking.hpp"
#include "store/sqlite/failure_groups.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kTop = 10;

/// The rows of a recording as an objective sees them.
class JudgedRows {
 public:
  JudgedRows(const Recording& recording, Objective& objective) : values_(recording.size()) {
    std::vector<Measurement> measurements;
    for (std::size_t row = 0; row < recording.size(); ++row) measurements.push_back(recording.measurement(row));
    std::vector<const Measurement*> pointers;
    for (const Measurement& measurement : measurements) pointers.push_back(&measurement);
    std::vector<bool> placed(recording.size(), false);
    for (const Ranked& ranked : rank(objective, pointers, [&](std::size_t row) {
           const auto confirmed = recording.confirmed.find(row);
           return confirmed != recording.confirmed.end() && confirmed->second == objective.spec();
         })) {
      order_.push_back(ranked.position);
      placed[ranked.position] = true;
    }
    const auto ranked = static_cast<std::ptrdiff_t>(order_.size());
    for (std::size_t row = 0; row < recording.size(); ++row) {
      values_[row] = objective.value(measurements[row]);
      if (values_[row] && !placed[row]) order_.push_back(row);
    }
    // what a front dominates stands behind it, by the first of its objectives
    std::stable_sort(order_.begin() + ranked, order_.end(), [&](std::size_t a, std::size_t b) {
      const double x = *values_[a], y = *values_[b];
      return objective.direction() == Direction::maximise ? x > y : x < y;
    });
  }
  /// Usable rows, best first.
  const std::vector<std::size_t>& order() const { return order_; }
  std::optional<double> value(std::size_t row) const { return values_[row]; }

 private:
  std::vector<std::optional<double>> values_;
  std::vector<std::size_t> order_;
};

class ReportDocument {
 public:
  ReportDocument(const ReportSource& source, Objective& objective)
      : source_(source),
        recording_(source.recording),
        objective_(objective),
        rows_(recording_, objective),
        repeats_(repeats()) {}

  Json build() {
    Json document;
    document["version"] = ERGOTUNE_VERSION;
    document["problem"] = recording_.name;
    document["device"] = recording_.device;
    document["provenance"] = to_string(source_.provenance);
    document["created"] = iso_time(source_.created_at > 0 ? source_.created_at : wall_seconds());
    document["objective"] = {{"name", objective_.name()},
                             {"direction", objective_.direction() == Direction::maximise ? "max" : "min"},
                             {"quantity", main_quantity()},
                             {"unit", objective_.unit()},
                             {"pareto", objective_.kind() == Objective::Kind::pareto}};
    document["parameters"] = parameters();
    document["quantities"] = Json::array();
    document["units"] = Json::object();
    document["better"] = Json::object();  // -1: less of it, 1: more
    for (const auto& column : recording_.columns) {
      document["quantities"].push_back(column.name);
      if (const QuantityInfo* info = quantity_info(column.name); info && info->better)
        document["better"][column.name] = *info->better == Direction::maximise ? 1 : -1;
      document["units"][column.name] = unit_of(column.name, recording_.metrics);
    }
    const auto& order = rows_.order();
    document["best"] = order.empty() ? Json() : row(order.front());
    print_certainty(document["best"]);
    if (repeats_.n > 0)
      document["search_repeats"] = {{"factor", repeats_.factor}, {"deviation", repeats_.deviation}, {"n", repeats_.n}};
    document["median"] = median_value();
    document["fastest"] = fastest();
    const auto default_row = default_index();
    document["default_row"] = default_row ? row(*default_row) : Json();
    document["gains"] = gains(document);
    document["top"] = Json::array();
    for (std::size_t k = 0; k < std::min(kTop, order.size()); ++k) document["top"].push_back(row(order[k]));
    document["counts"] = {
        {"total", recording_.size()},
        {"failed", recording_.size() - order.size()},
        {"not_converged", std::count(recording_.statuses.begin(), recording_.statuses.end(), Status::not_converged)}};
    if (source_.space) document["counts"]["space"] = *source_.space;
    document["convergence"] = convergence();
    document["convergence_range"] = convergence_range(document["convergence"]);
    document["failures"] = failures();
    document["environment"] = parse_json<Json>(source_.environment, false);
    if (!document["environment"].is_object()) document["environment"] = Json::object();
    if (Json& environment = document["environment"]; environment.contains("attribution")) {
      const Json shares = environment["attribution"];
      environment.erase("attribution");
      document["attribution"] = shares;
      for (const char* quantity : {"time", "energy"}) document["units"][quantity] = unit_of(quantity, {});
    }
    for (const auto& warning : recording_.warnings) document["environment"]["note"] = warning;
    return document;
  }

  Json findings() {
    return {{"importance", importance()}, {"analysis", analysis_section(recording_, {default_index(), space_size()})}};
  }

 private:
  /// The column that the objective's value stands in; empty where it is worked out.
  std::string main_quantity() const {
    const std::string name = objective_.quantity();
    return recording_.column(name) ? name : std::string();
  }

  /// As `show` has it: of those that were confirmed for this objective, should the winner be one of them.
  void print_certainty(Json& best) const {
    const auto& order = rows_.order();
    if (objective_.kind() == Objective::Kind::pareto || order.empty() || !is_confirmed(order.front())) return;
    const auto certainty = recording_.certainty.find(order.front());
    if (certainty == recording_.certainty.end()) return;
    best["probability_best"] = certainty->second.probability_best;
    if (objective_.kind() == Objective::Kind::single) best["expected_loss"] = certainty->second.expected_loss;
  }

  bool is_confirmed(std::size_t row) const {
    const auto at = recording_.confirmed.find(row);
    return at != recording_.confirmed.end() && at->second == objective_.spec();
  }

  /// How the search's values repeated when they were confirmed.
  Repeats repeats() const {
    std::vector<Measurement> means;
    std::vector<const Measurement*> searched;
    for (const auto& [row, before] : recording_.searched) {
      if (!is_confirmed(row)) continue;
      means.push_back(recording_.measurement(row));
      searched.push_back(&before);
    }
    std::vector<MeasuredTwice> pairs;
    for (std::size_t i = 0; i < means.size(); ++i) pairs.emplace_back(searched[i], &means[i]);
    return repeats_of(objective_, pairs);
  }

  Json importance() const {
    if (objective_.kind() == Objective::Kind::pareto) return importance_document({}, {});
    std::vector<Judged> judged;
    for (std::size_t row = 0; row < recording_.size(); ++row)
      judged.push_back({recording_.configuration(row), rows_.value(row)});
    return importance_document(recording_.parameters, importance_of(recording_.parameters, std::move(judged)));
  }

  Json parameters() const {
    Json list = Json::array();
    for (const auto& parameter : recording_.parameters) {
      Json values = Json::array();
      for (const auto& value : parameter.values) values.push_back(value.to_string());
      list.push_back({{"name", parameter.name}, {"values", values}});
    }
    return list;
  }

  Json row(std::size_t index) const {
    Json out;
    out["i"] = index;
    out["configuration"] = describe(recording_.parameters, recording_.configuration(index));
    out["c"] = Json::array();
    for (auto position : recording_.position(index)) out["c"].push_back(position);
    const auto value = rows_.value(index);
    out["v"] = value ? Json(*value) : Json();
    if (recording_.statuses[index] == Status::not_converged) out["unsure"] = true;
    const auto& order = rows_.order();
    if (value && is_confirmed(order.front()) && !is_confirmed(index)) {
      const auto behind =
          unconfirmed(objective_, recording_.measurement(index), recording_.measurement(order.front()), repeats_);
      if (behind) out["unconfirmed"] = {{"expected", behind->expected}, {"expected_gain", behind->expected_gain}};
    }
    out["q"] = Json::object();
    for (const auto& column : recording_.columns) {
      if (index < column.value.size() && std::isfinite(column.value[index]))
        out["q"][column.name] = column.value[index];
      if (const double half_width = column.half_width(index);
          column.name == main_quantity() && std::isfinite(half_width) && half_width > 0)
        out["half_width"] = half_width;
    }
    return out;
  }

  /// As `tune` has it: between the middle two where their number is even.
  Json median_value() const {
    std::vector<double> values;
    for (const std::size_t row : rows_.order()) values.push_back(*rows_.value(row));
    return values.empty() ? Json() : Json{{"v", median(values)}};
  }

  /// How many times better the best is than the default and the median, and what it gains and loses against the
  /// fastest.
  Json gains(const Json& document) const {
    Json out = Json::object();
    const auto& order = rows_.order();
    if (order.empty()) return out;
    const bool larger = objective_.direction() == Direction::maximise;
    const double best = *rows_.value(order.front());
    const auto against = [&](const char* name, const Json& row) {
      if (row.is_null() || !row["v"].is_number()) return;
      const double other = row["v"].get<double>();
      if (best > 0 && other > 0) out[name] = larger ? best / other : other / best;
    };
    against("default", document["default_row"]);
    against("median", document["median"]);
    if (document["fastest"].is_null() || !document["best"]["q"].contains("energy") ||
        !document["best"]["q"].contains("time"))
      return out;
    const Json &mine = document["best"]["q"], &fastest = document["fastest"]["q"];
    if (!fastest.contains("energy") || !(mine["time"] > fastest["time"])) return out;
    const double energy = fastest["energy"].get<double>(), time = fastest["time"].get<double>();
    if (energy > 0) out["energy_saved"] = 1 - mine["energy"].get<double>() / energy;
    if (time > 0) out["time_lost"] = mine["time"].get<double>() / time - 1;
    return out;
  }

  Json fastest() const {
    const auto* time = recording_.column("time");
    if (!time || rows_.order().empty()) return {};
    const auto quickest = *std::min_element(rows_.order().begin(), rows_.order().end(),
                                            [&](auto a, auto b) { return time->value[a] < time->value[b]; });
    return row(quickest);
  }

  /// Of a session that did not write it down nothing is a whole space; other recordings are taken for one.
  std::uint64_t space_size() const {
    if (source_.space) return *source_.space;
    return source_.created_at > 0 ? ~std::uint64_t{0} : 0;
  }

  std::optional<std::size_t> default_index() const {
    for (std::size_t index = 0; index < recording_.size(); ++index) {
      bool is_default = true;
      for (std::size_t p = 0; p < recording_.parameters.size() && is_default; ++p) {
        const auto& parameter = recording_.parameters[p];
        const Value& value = parameter.values[recording_.position(index)[p]];
        is_default = value == parameter.default_value.value_or(parameter.values.front());
      }
      if (is_default) return index;
    }
    return std::nullopt;
  }

  /// [configurations, best so far, s since the beginning or null]
  Json point(std::size_t index, double best) const {
    const bool known = index < source_.seconds.size() && std::isfinite(source_.seconds[index]);
    return {index + 1, best, known ? Json(source_.seconds[index]) : Json(nullptr)};
  }

  Json convergence() const {
    Json points = Json::array();
    std::optional<double> best;
    for (std::size_t index = 0; index < recording_.size(); ++index) {
      const auto value = rows_.value(index);
      if (!value) continue;
      const bool better = !best || (objective_.direction() == Direction::maximise ? *value > *best : *value < *best);
      if (better) best = value;
      if (better) points.push_back(point(index, *best));
    }
    if (best && points.back()[0] != recording_.size()) points.push_back(point(recording_.size() - 1, *best));
    return points;
  }

  /// Ends of the axis, with room for a line that never moves: around 0.01 s an axis from -1 s shows nothing.
  static Json convergence_range(const Json& points) {
    if (points.empty()) return nullptr;
    double least = points.front()[1].get<double>(), most = least;
    for (const Json& point : points) {
      least = std::min(least, point[1].get<double>());
      most = std::max(most, point[1].get<double>());
    }
    const double spread = most - least;
    const double room = spread > 0 ? 0.05 * spread : (most != 0 ? 0.05 * std::abs(most) : 1);
    return Json{least - room, most + room};
  }

  Json failures() const {
    FailureGroups groups;
    for (std::size_t index = 0; index < recording_.size(); ++index) {
      if (!usable(recording_.statuses[index]))
        groups.add(index, recording_.statuses[index], recording_.measurement(index).message);
    }
    Json list = Json::array();
    for (const FailureGroup& group : groups.list())
      list.push_back({{"status", to_string(group.status)},
                      {"count", group.count},
                      {"configuration", describe(recording_.parameters, recording_.configuration(group.first))},
                      {"message", group.message.empty() ? "(the source has no words for it)" : group.message}});
    return list;
  }

  const ReportSource& source_;
  const Recording& recording_;
  Objective& objective_;
  JudgedRows rows_;
  Repeats repeats_;
};

}  // namespace

ReportSource open_report_source(const std::filesystem::path& file, std::int64_t session) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) Store::open(file, true);  // says what to do about one that is not there
  ReportSource source;
  source.recording = load_recording(file, session);
  if (!is_store(file)) return source;
  const Store store = Store::open(file, true);
  const SessionInfo found = pick_session(store, session);
  add_session(source, found, store.environment(found.id));
  double first = INFINITY;
  for (const StoredRow& row : store.results(found.id)) {  // the recording's rows, in the same order
    source.seconds.push_back(row.measurement.finished_at);
    first = std::min(first, row.measurement.finished_at);
  }
  for (double& seconds : source.seconds) seconds -= first;
  return source;
}

void add_session(ReportSource& source, const SessionInfo& session, const std::string& stored_environment) {
  source.provenance = session.provenance;
  source.created_at = session.created_at;
  Json environment = parse_json<Json>(stored_environment, false);
  if (!environment.is_object()) environment = Json::object();
  if (!session.conditions.empty()) environment["conditions"] = session.conditions;
  if (const auto known = environment.find("configurations"); known != environment.end()) {
    if (known->is_number_unsigned()) source.space = known->get<std::uint64_t>();
    environment.erase(known);  // among the counts it says of what: the space, not what was measured
  }
  source.environment = environment.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Objective report_objective(const Recording& recording, const std::optional<std::string>& wanted) {
  const ObjectiveSpec goal = wanted ? ObjectiveSpec{*wanted, std::nullopt, {}} : recording.objective;
  Objective objective = Objective::parse(goal, with_names(recording.metrics, column_names(recording)));
  if (!wanted) return objective;
  std::vector<Measurement> measurements;
  for (std::size_t row = 0; row < recording.size(); ++row) measurements.push_back(recording.measurement(row));
  std::vector<const Measurement*> pointers;
  for (const Measurement& measurement : measurements) pointers.push_back(&measurement);
  validate_measured_quantities(objective, pointers);
  return objective;
}

Json report_document(const ReportSource& source, Objective& objective) {
  return ReportDocument(source, objective).build();
}

Json report_findings(const ReportSource& source, Objective& objective) {
  return ReportDocument(source, objective).findings();
}

}  // namespace ergotune
