#include "store/formats/recording_builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_text.hpp"
#include "base/statistics.hpp"
#include "ergotune/error.hpp"
#include "store/cache/cache_quantities.hpp"
#include "store/formats/exported_session.hpp"
#include "store/formats/json_values.hpp"
#include "store/formats/text_source.hpp"

namespace ergotune {

namespace {

double time_unit(const Json& json) {
  const Json metadata = json.value("metadata", Json::object());
  const std::string word = metadata.value("timeunit", "milliseconds");
  if (word.starts_with("nano")) return 1e-9;
  if (word.starts_with("micro")) return 1e-6;
  if (word.starts_with("sec") || word == "s") return 1;
  return 1e-3;  // "milliseconds", also spelt "miliseconds" in published files
}

double unit_scale(const std::string& unit, const std::string& name, double times) {
  if (unit == "s" || unit == "J" || unit == "W" || unit == "Hz" || unit == "V") return 1;
  if (unit == "ms" || unit == "mJ" || unit == "mW" || unit == "mV") return 1e-3;
  if (unit == "us") return 1e-6;
  if (unit == "ns") return 1e-9;
  if (unit == "MHz") return 1e6;
  return name == "time" ? times : cache_scale(name);
}

Status status_of(const std::string& invalidity) {
  if (invalidity == "correct") return Status::ok;
  if (invalidity == "compile") return Status::compile_error;
  if (invalidity == "timeout") return Status::timeout;
  if (invalidity == "correctness") return Status::wrong_result;
  if (invalidity == "constraints") return Status::unsupported;
  return Status::runtime_error;
}

RunningStatistics statistics_of(const Json& list, double scale, double& sum) {
  RunningStatistics statistics;
  sum = 0;
  for (const Json& item : list) {
    if (!item.is_number()) continue;
    statistics.add(item.get<double>() * scale);
    sum += item.get<double>() * scale;
  }
  return statistics;
}

class T4Rows {
 public:
  T4Rows(std::size_t dimensions, double times) : rows_(dimensions), values_(dimensions), times_(times) {}

  void add(const Json& result, const std::vector<Parameter>& parameters) {
    Configuration configuration;
    for (const Parameter& parameter : parameters) {
      configuration.push_back(value_from(result.at("configuration").at(parameter.name)));
    }
    Status status = status_of(result.at("invalidity").get<std::string>());
    if (result.contains("ergotune")) status = status_from(result.at("ergotune").value("status", "")).value_or(status);
    if (result.contains("error_message")) rows_.set_message(result.at("error_message").get<std::string>());
    RowCosts costs;
    if (result.contains("times")) add_times(result.at("times"), costs);
    if (result.contains("measurements")) {
      for (const Json& measurement : result.at("measurements")) add_measurement(measurement);
    }
    rows_.finish_row(values_.positions(configuration), status, costs);
  }

  void finish(Recording& recording) {
    rows_.finish(recording);
    values_.finish(recording);
  }

 private:
  void add_measurement(const Json& measurement) {
    const auto name = measurement.at("name").get<std::string>();
    const double scale = unit_scale(measurement.value("unit", ""), name, times_);
    const Json& value = measurement.at("value");
    if (value.is_number()) {
      // A bare "energy" without a unit is a metric that a Kernel Tuner user computed.
      const bool measured = is_observed(name) || (renamed_target(name) && !measurement.value("unit", "").empty());
      const std::size_t column = rows_.column(name, !measured);
      rows_.set(column, value.get<double>() * scale);
      if (!measurement.contains("ergotune")) return;
      const Json& own = measurement.at("ergotune");
      rows_.set_error(column, own.contains("standard_error") ? number_from(own.at("standard_error")) : 0,
                      own.value("n", 1u));
      if (own.contains("degrees")) rows_.set_degrees(column, own.at("degrees").get<double>());
    } else if (value.is_array()) {
      double sum = 0;
      const auto statistics = statistics_of(value, scale, sum);
      if (statistics.count() == 0) return;
      const std::string stem = name.ends_with('s') ? name.substr(0, name.size() - 1) : name;
      rows_.set_statistics(rows_.column(stem, !is_observed(stem)), statistics.mean(), statistics.standard_error(),
                           static_cast<std::uint32_t>(statistics.count()));
    }
  }

  void add_times(const Json& times, RowCosts& costs) {
    const auto cost = [&](const char* name, const char* other) {
      for (const char* key : {name, other}) {
        if (times.contains(key) && times.at(key).is_number()) {
          costs.any = true;
          return times.at(key).get<double>() * times_;
        }
      }
      return 0.0;
    };
    costs.compile = cost("compilation", "compilation_time");
    costs.verify = cost("validation", "validation_time");
    costs.framework = cost("framework", "framework_time");
    if (!times.contains("runtimes") || times.at("runtimes").empty()) return;
    const auto statistics = statistics_of(times.at("runtimes"), times_, costs.run);
    if (statistics.count() == 0) return;
    costs.any = true;
    rows_.set_statistics(rows_.column("time", false), statistics.mean(), statistics.standard_error(),
                         static_cast<std::uint32_t>(statistics.count()));
  }

  RecordingBuilder rows_;
  DistinctValues values_;
  double times_;
};

}  // namespace

Recording read_t4(const std::filesystem::path& file) {
  Recording recording;
  recording.file = file;
  Json session;
  bool cut = false;
  try {
    const auto json = parse_json<Json>(read_all(file, &cut));
    const Json& results = json.at("results");
    if (results.empty()) throw UserError("this T4 file has no results", {file.string(), 0, 0});
    for (const auto& [name, value] : results.front().at("configuration").items()) {
      recording.parameters.push_back(recorded_parameter(name));
    }
    if (json.contains("metadata")) {
      recording.device = json.at("metadata").value("device", "");
      recording.name = json.at("metadata").value("kernel", "");
      recording.provenance = provenance_in_file(json.at("metadata").value("provenance", ""));
      session = json.at("metadata").value("ergotune", Json());
    }
    const Json& first = results.front();
    if (first.contains("objectives") && !first.at("objectives").empty() && first.at("objectives").front().is_string()) {
      recording.objective.text = first.at("objectives").front().get<std::string>();
    }
    T4Rows rows(recording.parameters.size(), time_unit(json));
    for (const Json& result : results) rows.add(result, recording.parameters);
    rows.finish(recording);
  } catch (const Json::exception& error) {
    if (cut) throw UserError("this T4 file is cut off: its gzip stream has no end", {file.string(), 0, 0});
    throw UserError(fmt::format("this is not a T4 file as its schema describes it: {}", error.what()),
                    {file.string(), 0, 0});
  }
  const bool own_objective = recording.column(recording.objective.text) != nullptr;
  for (std::string& remark : rename_columns(recording.columns)) recording.warnings.push_back(std::move(remark));
  if (!own_objective || !recording.column(recording.objective.text))
    recording.objective.text = renamed(recording.objective.text);
  read_session_json(session, recording);
  if (recording.name.empty()) recording.name = file.filename().string().substr(0, file.filename().string().find('.'));
  return recording;
}

}  // namespace ergotune
