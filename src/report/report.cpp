#include "ergotune/report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/files.hpp"
#include "ergotune/analysis/svg_chart.hpp"
#include "ergotune/base/clock.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/base/random.hpp"
#include "ergotune/problem/quantity.hpp"
#include "ergotune/search/certainty.hpp"
#include "ergotune/search/importance.hpp"
#include "ergotune/search/ranking.hpp"
#include "ergotune/store/recording.hpp"
#include "ergotune/store/store.hpp"
#include "report/analysis_section.hpp"
#include "store/failure_groups.hpp"

extern "C" {
extern const char ergotune_embedded_report_page[];
extern const char ergotune_embedded_report_css[];
extern const char ergotune_embedded_report_js[];
extern const char ergotune_embedded_chart_js[];
}

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

/// Above this many configurations the charts show a sample (the best and all that they are compared with stay
/// in).
constexpr std::size_t kMostPoints = 4000;
constexpr std::size_t kTop = 10;

/// A measured session has a store behind it with an environment; other recordings tell only of themselves.
struct Source {
  Recording recording;
  Json environment = Json::object();
  Provenance provenance = Provenance::replayed;
  double created_at = 0;
  /// Configurations of the whole space; nullopt where nobody wrote it down.
  std::optional<std::uint64_t> space;
};

Source open_source(const std::filesystem::path& file, std::int64_t session) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) Store::open(file, true);  // says what to do about one that is not there
  Source source{.recording = load_recording(file, session)};
  if (!is_store(file)) return source;
  const Store store = Store::open(file, true);
  const SessionInfo found = pick_session(store, session);
  source.provenance = found.provenance;
  source.created_at = found.created_at;
  source.environment = Json::parse(store.environment(found.id), nullptr, false);
  if (!source.environment.is_object()) source.environment = Json::object();
  if (!found.conditions.empty()) source.environment["conditions"] = found.conditions;
  if (const auto known = source.environment.find("configurations"); known != source.environment.end()) {
    if (known->is_number_unsigned()) source.space = known->get<std::uint64_t>();
    source.environment.erase(known);  // among the counts it says of what: the space, not what was measured
  }
  return source;
}

/// The rows of a recording as an objective sees them.
class JudgedRows {
 public:
  JudgedRows(const Recording& recording, Objective& objective) : values_(recording.size()) {
    std::vector<Measurement> measurements;
    for (std::size_t row = 0; row < recording.size(); ++row)
      measurements.push_back(recording.measurement(row));
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
  ReportDocument(const Source& source, Objective& objective)
      : source_(source), recording_(source.recording), objective_(objective), rows_(recording_, objective) {}

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
    for (const auto& column : recording_.columns) {
      document["quantities"].push_back(column.name);
      document["units"][column.name] = unit_of(column.name, recording_.metrics);
    }
    const auto& order = rows_.order();
    document["best"] = order.empty() ? Json() : row(order.front());
    tell_certainty(document["best"]);
    document["importance"] = importance();
    document["median"] = order.empty() ? Json() : row(order[order.size() / 2]);
    document["fastest"] = fastest();
    const auto default_row = default_index();
    document["default_row"] = default_row ? row(*default_row) : Json();
    document["top"] = Json::array();
    for (std::size_t k = 0; k < std::min(kTop, order.size()); ++k) document["top"].push_back(row(order[k]));
    document["rows"] = sample();
    document["counts"] = {{"total", recording_.size()},
                          {"failed", recording_.size() - order.size()},
                          {"not_converged", std::count(recording_.statuses.begin(), recording_.statuses.end(),
                                                       Status::not_converged)},
                          {"shown", document["rows"].size()}};
    if (source_.space) document["counts"]["space"] = *source_.space;
    document["convergence"] = convergence();
    document["convergence_range"] = convergence_range(document["convergence"]);
    document["analysis"] = analysis_section(recording_, {default_row, space_size()});
    document["failures"] = failures();
    document["environment"] = source_.environment;
    if (const auto shares = source_.environment.find("attribution"); shares != source_.environment.end()) {
      document["attribution"] = *shares;
      document["environment"].erase("attribution");
      for (const char* quantity : {"time", "energy"}) document["units"][quantity] = unit_of(quantity, {});
    }
    for (const auto& warning : recording_.warnings) document["environment"]["note"] = warning;
    return document;
  }

 private:
  /// The column that the objective's value stands in; empty where it is worked out.
  std::string main_quantity() const {
    const std::string name = objective_.quantity();
    return recording_.column(name) ? name : std::string();
  }

  /// As `show` has it: of those that were confirmed for this objective, should the winner be one of them.
  void tell_certainty(Json& best) const {
    const auto& order = rows_.order();
    const auto confirmed = [&](std::size_t row) {
      const auto at = recording_.confirmed.find(row);
      return at != recording_.confirmed.end() && at->second == objective_.spec();
    };
    if (objective_.kind() == Objective::Kind::pareto || order.empty() || !confirmed(order.front())) return;
    std::vector<Outcome> outcomes;
    for (const std::size_t row : order)
      if (confirmed(row)) outcomes.push_back(objective_.outcome(recording_.measurement(row)));
    const auto certainty = certainty_of(outcomes);
    if (!certainty) return;
    best["probability_best"] = certainty->probability_best;
    if (objective_.kind() == Objective::Kind::single) best["expected_loss"] = certainty->expected_loss;
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
    out["c"] = Json::array();
    for (auto position : recording_.position(index)) out["c"].push_back(position);
    const auto value = rows_.value(index);
    out["v"] = value ? Json(*value) : Json();
    if (recording_.statuses[index] == Status::not_converged) out["unsure"] = true;
    out["q"] = Json::object();
    for (const auto& column : recording_.columns) {
      if (index < column.value.size() && std::isfinite(column.value[index]))
        out["q"][column.name] = column.value[index];
      if (column.name == main_quantity() && index < column.standard_error.size() &&
          std::isfinite(column.standard_error[index]))
        out["e"] = column.standard_error[index];
    }
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

  Json sample() const {
    std::vector<std::size_t> chosen(rows_.order());
    if (chosen.size() > kMostPoints) {
      Random random(1);
      random.shuffle(std::span(chosen).subspan(kMostPoints / 4));  // the best quarter of the page stays
      chosen.resize(kMostPoints);
    }
    std::sort(chosen.begin(), chosen.end());
    Json list = Json::array();
    for (auto index : chosen) list.push_back(row(index));
    return list;
  }

  Json convergence() const {
    Json points = Json::array();
    std::optional<double> best;
    for (std::size_t index = 0; index < recording_.size(); ++index) {
      const auto value = rows_.value(index);
      if (!value) continue;
      const bool better =
          !best || (objective_.direction() == Direction::maximise ? *value > *best : *value < *best);
      if (better) best = value;
      if (better) points.push_back({index + 1, *best});
    }
    if (best && points.back()[0] != recording_.size()) points.push_back({recording_.size(), *best});
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
    return {least - room, most + room};
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

  const Source& source_;
  const Recording& recording_;
  Objective& objective_;
  JudgedRows rows_;
};

void refuse_unanswered(const Objective& objective, const Recording& recording) {
  std::vector<Measurement> measurements;
  for (std::size_t row = 0; row < recording.size(); ++row) measurements.push_back(recording.measurement(row));
  std::vector<const Measurement*> pointers;
  for (const Measurement& measurement : measurements) pointers.push_back(&measurement);
  refuse_what_was_not_measured(objective, pointers);
}

void replace(std::string& text, std::string_view mark, std::string_view by) {
  if (const auto at = text.find(mark); at != std::string::npos) text.replace(at, mark.size(), by);
}

}  // namespace

ReportSummary write_report(const std::filesystem::path& source_file, std::int64_t session,
                           const std::filesystem::path& output, const std::optional<std::string>& wanted) {
  const Source source = open_source(source_file, session);
  const Recording& recording = source.recording;
  const ObjectiveSpec goal = wanted ? ObjectiveSpec{*wanted, std::nullopt, {}} : recording.objective;
  Objective objective = Objective::parse(goal, recording.metrics);
  if (wanted) refuse_unanswered(objective, recording);
  const Json document = ReportDocument(source, objective).build();

  // "</" would end the script element that carries the data
  std::string data = document.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (std::size_t at = 0; (at = data.find("</", at)) != std::string::npos; at += 3)
    data.replace(at, 2, "<\\/");

  std::string page = ergotune_embedded_report_page;
  replace(page, "@TITLE@", escape_markup(recording.name));
  replace(page, "@CSS@", ergotune_embedded_report_css);
  replace(page, "@SCRIPT@", ergotune_embedded_report_js);
  replace(page, "@CHART@", ergotune_embedded_chart_js);
  replace(page, "@DATA@", data);
  write_named_file(output == "-" ? "/dev/stdout" : output, page);
  return {.problem = recording.name,
          .device = recording.device,
          .objective = objective.name(),
          .configurations = recording.size(),
          .failed = document["counts"]["failed"].get<std::uint64_t>(),
          .space = source.space,
          .file = output};
}

}  // namespace ergotune
