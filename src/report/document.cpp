#include "report/document.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "base/clock.hpp"
#include "base/json_text.hpp"
#include "ergotune/error.hpp"
#include "problem/tables/quantity.hpp"
#include "report/prediction.hpp"
#include "report/recording_analysis.hpp"
#include "report/result_document.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kTop = 10;

class ReportDocument {
 public:
  ReportDocument(const ReportSource& source, const RankedResults& ranked) : source_(source), ranked_(ranked) {}

  Json build() const {
    const Recording& recording = source_.recording;
    Json document = results_document(ranked_, kTop);
    document["created"] = iso_time(source_.created_at > 0 ? source_.created_at : wall_seconds());
    document["parameters"] = parameters();
    document["quantities"] = Json::array();
    document["units"] = Json::object();
    document["better"] = Json::object();  // -1: smaller is better, 1: larger is better
    for (const auto& column : recording.columns) {
      document["quantities"].push_back(column.name);
      if (const QuantityInfo* info = quantity_info(column.name); info && info->better)
        document["better"][column.name] = *info->better == Direction::maximise ? 1 : -1;
      document["units"][column.name] = unit_of(column.name, recording.metrics);
    }
    const std::optional<std::size_t> fastest = fastest_row();
    document["fastest"] = fastest ? row_document(ranked_, *fastest) : Json();
    document["gains"] = gains(fastest);
    document["shown"] = recording.size();
    document["convergence"] = convergence();
    document["convergence_range"] = convergence_range(document["convergence"]);
    document["environment"] = parse_json<Json>(source_.environment, false);
    if (!document["environment"].is_object()) document["environment"] = Json::object();
    if (Json& environment = document["environment"]; environment.contains("attribution")) {
      const Json shares = environment["attribution"];
      environment.erase("attribution");
      document["attribution"] = shares;
      for (const char* quantity : {"time", "energy"}) document["units"][quantity] = unit_of(quantity, {});
    }
    for (const auto& warning : recording.warnings) document["environment"]["note"] = warning;
    return document;
  }

  Json findings() const {
    return {{"importance", importance_document(source_.recording.parameters, ranked_.importance())},
            {"analysis", analysis()},
            {"predictions", predictions()}};
  }

 private:
  Json parameters() const {
    Json list = Json::array();
    for (const auto& parameter : source_.recording.parameters) {
      Json values = Json::array();
      for (const auto& value : parameter.values) values.push_back(value.to_string());
      list.push_back({{"name", parameter.name}, {"values", values}});
    }
    return list;
  }

  /// The factors by which the best is better than the default and the median, and its differences to the fastest
  /// configuration.
  Json gains(std::optional<std::size_t> fastest) const {
    Json out = Json::object();
    if (ranked_.best.empty()) return out;
    if (const auto gain = ranked_.gain_over_default()) {
      out["default"] = gain->factor;
      if (gain->half_width > 0) out["default_half_width"] = gain->half_width;
    }
    if (const auto gain = ranked_.gain_over_median()) out["median"] = gain->factor;
    if (!fastest) return out;
    const Measurement &mine = ranked_.measurement(ranked_.best.front()), &other = ranked_.measurement(*fastest);
    const auto energy = mine.value("energy"), time = mine.value("time");
    const auto other_energy = other.value("energy"), other_time = other.value("time");
    if (!energy || !time || !other_energy || !other_time || !(*time > *other_time)) return out;
    if (*other_energy > 0) out["energy_saved"] = 1 - *energy / *other_energy;
    if (*other_time > 0) out["time_lost"] = *time / *other_time - 1;
    return out;
  }

  std::optional<std::size_t> fastest_row() const {
    std::optional<std::size_t> fastest;
    double least = INFINITY;
    for (std::size_t row = 0; row < ranked_.results.rows.size(); ++row) {
      const auto time = ranked_.value(row) ? ranked_.measurement(row).value("time") : std::nullopt;
      if (!time || !(*time < least)) continue;
      fastest = row;
      least = *time;
    }
    return fastest;
  }

  /// The document of `ergotune analyse --json` with a comparison with the default; null for too few configurations.
  /// Local minima are computed only for spaces that are recorded nearly completely: without their neighbours nearly all
  /// configurations look like minima.
  Json analysis() const {
    constexpr std::size_t kFewest = 10, kMostForCentrality = 20'000;
    Recording recording = source_.recording;
    recording.space = space_size();
    const std::size_t points = analyse_tradeoff(recording).points.size();
    if (points < kFewest) return nullptr;
    const RecordingAnalysis found = analyse_recording(recording, {.centrality = points <= kMostForCentrality});
    Json document = analysis_document(found);
    document["against_default"] = against_default(found.tradeoff);
    return document;
  }

  /// Per quantity: every configuration beside what a model of all the others predicts for it, the best with their
  /// parameters. Modelled; empty for too few configurations.
  Json predictions() const {
    const Recording& recording = source_.recording;
    std::vector<Configuration> configurations;
    for (std::size_t row = 0; row < recording.size(); ++row) configurations.push_back(recording.configuration(row));
    const SearchSpace space = SearchSpace::from_configurations(recording.parameters, configurations);
    Predictor::Known known;
    for (std::size_t row = 0; row < recording.size(); ++row) {
      const Measurement measurement = recording.measurement(row);
      if (!usable(measurement.status)) continue;
      auto& values = known.emplace_back(*space.index_of(configurations[row]), std::map<std::string, double>{}).second;
      for (const char* name : {"time", "energy"})
        if (const auto value = measurement.value(name)) values[name] = *value;
    }
    const Predictor predictor(space, std::move(known));
    Json list = Json::array();
    for (const auto& [name, model] : predictor.models()) {
      Json points = Json::array();
      for (const QuantityModel::LeftOut& one : model.left_out) {
        const PredictedValue& predicted = one.predicted;
        points.push_back({{to_string(source_.recording.provenance), one.measured},
                          {"modelled",
                           {{"value", predicted.value},
                            {"low", predicted.value / predicted.factor},
                            {"high", predicted.value * predicted.factor}}}});
        if (points.size() <= kTop)
          points.back()["configuration"] = to_json(recording.parameters, space.configuration(one.index));
      }
      list.push_back({{"quantity", name},
                      {"unit", unit_of(name, {})},
                      {"provenance", to_string(source_.recording.provenance)},
                      {"median_error", model.median_error},
                      {"coverage", model.coverage},
                      {"points", std::move(points)}});
    }
    return list;
  }

  /// Number of configurations that are faster, more efficient, both or neither compared to the default.
  Json against_default(const Tradeoff& tradeoff) const {
    const auto found =
        std::ranges::find_if(tradeoff.points, [&](const TradeoffPoint& p) { return p.row == ranked_.default_row; });
    if (!tradeoff.has_energy || found == tradeoff.points.end()) return nullptr;
    std::size_t both = 0, faster = 0, more_efficient = 0;
    for (const TradeoffPoint& p : tradeoff.points) {
      const bool less_time = p.time < found->time, less_energy = p.energy < found->energy;
      both += less_time && less_energy;
      faster += less_time && !less_energy;
      more_efficient += less_energy && !less_time;
    }
    return {{"of", tradeoff.points.size() - 1},
            {"both", both},
            {"only_faster", faster},
            {"only_more_efficient", more_efficient}};
  }

  /// The size of the space. Measured sessions that did not record it count as incomplete, recordings as complete.
  std::uint64_t space_size() const {
    if (source_.space) return *source_.space;
    return source_.created_at > 0 ? ~std::uint64_t{0} : 0;
  }

  /// [configurations, best so far, s since the start or null]
  Json point(std::size_t index, double best) const {
    const bool known = index < source_.seconds.size() && std::isfinite(source_.seconds[index]);
    return {index + 1, best, known ? Json(source_.seconds[index]) : Json(nullptr)};
  }

  Json convergence() const {
    Json points = Json::array();
    std::optional<double> best;
    const std::size_t size = ranked_.results.rows.size();
    for (std::size_t row = 0; row < size; ++row) {
      const auto value = ranked_.value(row);
      if (!value) continue;
      const bool larger = ranked_.objective.direction() == Direction::maximise;
      const bool better = !best || (larger ? *value > *best : *value < *best);
      if (better) best = value;
      if (better) points.push_back(point(row, *best));
    }
    if (best && points.back()[0] != size) points.push_back(point(size - 1, *best));
    return points;
  }

  /// Limits of the axis, with a margin even for a constant line: around 0.01 s an axis from -1 s would show nothing.
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

  const ReportSource& source_;
  const RankedResults& ranked_;
};

using Rows = std::vector<std::size_t>;

std::string quoted(const std::string& text) { return json_text(Json(text)); }

/// Appends "name":[...], where `write` appends the element of each row.
template <typename Write>
void add_list(std::string& out, const std::string& name, const Rows& rows, const Write& write) {
  out += quoted(name) + ":[";
  bool first = true;
  for (const std::size_t row : rows) {
    if (!first) out += ',';
    first = false;
    write(std::back_inserter(out), row);
  }
  out += ']';
}

template <typename Out>
void write_number(Out out, double value) {
  if (std::isfinite(value)) {
    fmt::format_to(out, "{:.7g}", value);
  } else {
    fmt::format_to(out, "null");
  }
}

/// Texts that repeat: {"names": [...], "of": [position by row]}.
void add_names(std::string& out, const std::string& name, const Rows& rows, const std::vector<std::string>& texts) {
  std::map<std::string, std::size_t> number;
  std::vector<std::string> names;
  std::vector<std::size_t> of;
  for (const std::size_t row : rows) {
    const auto [place, added] = number.emplace(texts[row], names.size());
    if (added) names.push_back(texts[row]);
    of.push_back(place->second);
  }
  std::size_t at = 0;
  out += quoted(name) + ":{\"names\":" + json_text(Json(names)) + ",";
  add_list(out, "of", rows, [&](auto to, std::size_t) { fmt::format_to(to, "{}", of[at++]); });
  out += '}';
}

void add_columns(std::string& out, const Recording& recording, const Rows& rows) {
  out += "\"columns\":{";
  bool first = true;
  for (const RecordedColumn& column : recording.columns) {
    if (!std::exchange(first, false)) out += ',';
    add_list(out, column.name, rows, [&](auto to, std::size_t row) { write_number(to, column.value[row]); });
  }
  out += "},\"half_widths\":{";
  first = true;
  for (const RecordedColumn& column : recording.columns) {
    if (column.standard_error.empty()) continue;
    if (!std::exchange(first, false)) out += ',';
    add_list(out, column.name, rows, [&](auto to, std::size_t row) { write_number(to, column.half_width(row)); });
  }
  out += '}';
}

}  // namespace

ReportSource open_report_source(const std::filesystem::path& file, std::int64_t session) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) Store::open(file, true);  // throws with advice if the file does not exist
  ReportSource source;
  source.recording = load_recording(file, session);
  source.device_name = source.device_id = source.recording.device;
  if (!is_store(file)) return source;
  const Store store = Store::open(file, true);
  const SessionInfo found = pick_session(store, session);
  source.store = file;
  add_session(source, found, store.environment(found.id));
  double first = INFINITY;
  for (const StoredRow& row : store.results(found.id)) {  // the rows of the recording, in the same order
    source.seconds.push_back(row.measurement.finished_at);
    first = std::min(first, row.measurement.finished_at);
  }
  for (double& seconds : source.seconds) seconds -= first;
  return source;
}

void add_session(ReportSource& source, const SessionInfo& session, const std::string& stored_environment) {
  source.recording.provenance = session.provenance;
  source.created_at = session.created_at;
  source.session = session.id;
  source.size = session.constants;
  Json environment = parse_json<Json>(stored_environment, false);
  if (!environment.is_object()) environment = Json::object();
  source.device_name = environment.value("device", session.device);
  source.device_id = environment.value("device_id", source.device_name);
  if (!session.conditions.empty()) environment["conditions"] = session.conditions;
  if (const auto known = environment.find("configurations"); known != environment.end()) {
    if (known->is_number_unsigned()) source.space = known->get<std::uint64_t>();
    environment.erase(known);  // among the counts it would be ambiguous: it is the size of the space, not a number of
                               // measurements
  }
  environment.erase("valid_configurations");
  source.environment = json_text(environment);
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

RankedResults rank_source(const ReportSource& source, const std::optional<std::string>& wanted) {
  ResultSet results = result_set(source.recording);
  results.device_name = source.device_name;
  results.device_id = source.device_id;
  results.store = source.store;
  results.session = source.session;
  results.size = source.size;
  results.space = source.space;
  for (StoredRow& row : results.rows)
    for (auto& [name, quantity] : row.measurement.quantities) {
      const QuantityInfo* info = quantity_info(name);
      if (info && info->modelled) quantity.provenance = Provenance::modelled;
    }
  return rank_results(std::move(results), report_objective(source.recording, wanted));
}

Json report_document(const ReportSource& source, const RankedResults& ranked) {
  return ReportDocument(source, ranked).build();
}

Json report_findings(const ReportSource& source, const RankedResults& ranked) {
  return ReportDocument(source, ranked).findings();
}

std::string columns_json(const Recording& recording, const Objective& objective, const Rows& rows,
                         const ColumnsExtra& extra) {
  std::string out = "{";
  add_list(out, "rows", rows, [](auto to, std::size_t row) { fmt::format_to(to, "{}", row); });
  out += ",\"parameters\":[";
  for (std::size_t p = 0; p < recording.parameters.size(); ++p) {
    Json values = Json::array();
    for (const Value& value : recording.parameters[p].values)
      values.push_back(std::visit([](const auto& v) { return Json(v); }, value.data()));
    out += fmt::format("{}{{\"name\":{},\"values\":{},", p ? "," : "", quoted(recording.parameters[p].name),
                       json_text(values));
    add_list(out, "of", rows, [&](auto to, std::size_t row) { fmt::format_to(to, "{}", recording.position(row)[p]); });
    out += '}';
  }
  out += "],";
  std::vector<std::string> statuses(recording.size());
  for (const std::size_t row : rows) statuses[row] = to_string(recording.statuses[row]);
  add_names(out, "status", rows, statuses);
  out += ',';
  const ObjectiveSpec& wanted = objective.spec();
  add_list(out, "confirmed", rows,
           [&](auto to, std::size_t row) { fmt::format_to(to, "{}", recording.is_confirmed(row, wanted) ? 1 : 0); });
  out += ',';
  add_list(out, "objective", rows, [&](auto to, std::size_t row) {
    write_number(to, objective.value(recording.measurement(row)).value_or(NAN));
  });
  out += ',';
  if (extra.seconds && !extra.seconds->empty()) {
    add_list(out, "seconds", rows, [&](auto to, std::size_t row) { write_number(to, (*extra.seconds)[row]); });
    out += ',';
  }
  for (const auto& [name, texts] : {std::pair("stage", extra.stages), std::pair("device", extra.gpus)}) {
    if (!texts) continue;
    add_names(out, name, rows, *texts);
    out += ',';
  }
  add_columns(out, recording, rows);
  out += '}';
  return out;
}

}  // namespace ergotune
