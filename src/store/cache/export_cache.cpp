// Kernel Tuner caches and T4 results.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/json_text.hpp"
#include "problem/tables/quantity.hpp"
#include "store/cache/cache_quantities.hpp"
#include "store/formats/export.hpp"
#include "store/formats/exported_session.hpp"
#include "store/formats/json_values.hpp"

namespace ergotune {
namespace {

constexpr double kSecondsToMilliseconds = 1e3;

/// One row per configuration, as in a cache: the first usable one.
std::vector<const StoredRow*> one_per_configuration(const std::vector<StoredRow>& rows) {
  std::map<Configuration, std::size_t> seen;
  std::vector<const StoredRow*> result;
  for (const StoredRow& row : rows) {
    const auto [found, added] = seen.emplace(row.configuration, result.size());
    if (added) {
      result.push_back(&row);
    } else if (!usable(result[found->second]->measurement.status) && usable(row.measurement.status)) {
      result[found->second] = &row;
    }
  }
  return result;
}

/// The objective under Kernel Tuner's name, if it is a single recorded value; the dashboard expects it in every entry.
std::string cache_objective(const ResultSet& results) {
  const auto has = [&](const StoredRow& row) {
    return !usable(row.measurement.status) || row.measurement.value(results.objective).has_value();
  };
  if (results.objective == "time" || !std::ranges::all_of(results.rows, has)) return "time";
  for (const StoredRow& row : results.rows) {
    const auto found = row.measurement.quantities.find(results.objective);
    if (found != row.measurement.quantities.end()) return cache_name(found->first, found->second);
  }
  return results.objective;
}

/// A metric's value with its error, as a quantity.
Quantity metric_quantity(const Measurement& m, const std::string& name, double value) {
  Quantity quantity;
  quantity.value = value;
  quantity.standard_error = m.standard_error(name);
  quantity.n = 1;
  quantity.degrees = m.degrees(name);
  return quantity;
}

/// Whether readers would take the value's interval for another one: they compute that of the time from `times`.
bool needs_certainty(const std::string& name, const Quantity& quantity) {
  return quantity.n > 1 || quantity.standard_error != 0 || name == "time";
}

Json entry_json(const ResultSet& results, const StoredRow& row, const std::string& objective) {
  const Measurement& m = row.measurement;
  Json entry = Json::object(), own = Json::object();
  if (m.status != Status::ok) own["status"] = to_string(m.status);
  for (std::size_t p = 0; p < results.parameters.size(); ++p) {
    entry[results.parameters[p].name] = value_json(row.configuration[p]);
  }
  if (!usable(m.status)) {
    // Older readers expect the status under the objective, newer ones under __error__.
    entry[objective] = entry["time"] = entry["__error__"] = status_for_cache(m.status);
    if (!m.message.empty()) entry["error_message"] = m.message;
  }
  for (const auto& [name, quantity] : m.quantities) {
    const std::string key = cache_name(name, quantity);
    if (entry.contains(key) || !std::isfinite(quantity.value)) continue;
    entry[key] = quantity.value / cache_scale(key);
    if (needs_certainty(name, quantity)) own["certainty"][key] = certainty_json(quantity);
  }
  if (!m.times.empty()) {
    Json& times = entry["times"] = Json::array();
    for (const double time : m.times) times.push_back(time * kSecondsToMilliseconds);
  }
  for (const auto& [name, value] : m.metrics) {
    if (entry.contains(name) || !std::isfinite(value)) continue;
    entry[name] = value;
    if (const Quantity quantity = metric_quantity(m, name, value); needs_certainty({}, quantity))
      own["certainty"][name] = certainty_json(quantity);
  }
  entry["compile_time"] = m.compile_seconds * kSecondsToMilliseconds;
  entry["verification_time"] = m.verify_seconds * kSecondsToMilliseconds;
  entry["benchmark_time"] = m.measure_seconds * kSecondsToMilliseconds;
  entry["strategy_time"] = 0;
  entry["framework_time"] = m.tuner_seconds * kSecondsToMilliseconds;
  if (m.finished_at > 0) entry["timestamp"] = cache_time_stamp(m.finished_at);
  if (!own.empty()) entry["ergotune"] = std::move(own);
  return entry;
}

Json head_json(const ResultSet& results, const std::string& objective) {
  Json keys = Json::array(), values = Json::object();
  for (const Parameter& parameter : results.parameters) {
    keys.push_back(parameter.name);
    Json& list = values[parameter.name] = Json::array();
    for (const Value& value : parameter.values) list.push_back(value_json(value));
  }
  Json head{{"device_name", results.device}, {"kernel_name", results.kernel}};
  // Kernel Tuner compares the problem size if there is one; only problems imported from T1 define it.
  Json sizes = Json::array();
  for (const char* axis : {"problem_size_x", "problem_size_y", "problem_size_z"}) {
    const auto found = results.constants.find(axis);
    if (found == results.constants.end()) break;
    sizes.push_back(value_json(found->second));
  }
  if (!sizes.empty()) head["problem_size"] = sizes;
  head["tune_params_keys"] = keys;
  head["tune_params"] = values;
  head["objective"] = objective;
  if (results.provenance != Provenance::measured) head["provenance"] = to_string(results.provenance);
  head["ergotune"] = session_json(results);
  return head;
}

constexpr const char* kSchemaVersion = "1.0.0";

const char* invalidity(Status status) {
  switch (status) {
    case Status::ok:
    case Status::not_converged:
      return "correct";
    case Status::compile_error:
      return "compile";
    case Status::timeout:
      return "timeout";
    case Status::wrong_result:
      return "correctness";
    case Status::unsupported:
      return "constraints";
    case Status::launch_error:
    case Status::runtime_error:
      return "runtime";
  }
  return "runtime";
}

Json measurements_json(const ResultSet& results, const Measurement& m) {
  Json list = Json::array();
  for (const auto& [name, quantity] : m.quantities) {
    if (!std::isfinite(quantity.value)) continue;
    // Readers of T4 expect "time" in the unit that the file names.
    const bool time = name == "time";
    list.push_back({{"name", name},
                    {"value", time ? quantity.value * kSecondsToMilliseconds : quantity.value},
                    {"unit", time ? "ms" : unit_of(name)}});
    if (needs_certainty(name, quantity)) list.back()["ergotune"] = certainty_json(quantity);
  }
  for (const auto& [name, value] : m.metrics) {
    if (!std::isfinite(value)) continue;
    list.push_back({{"name", name}, {"value", value}, {"unit", unit_of(name, results.metrics)}});
    if (const Quantity quantity = metric_quantity(m, name, value); needs_certainty({}, quantity))
      list.back()["ergotune"] = certainty_json(quantity);
  }
  return list;
}

Json result_json(const ResultSet& results, const StoredRow& row) {
  const Measurement& m = row.measurement;
  Json configuration = Json::object();
  for (std::size_t p = 0; p < results.parameters.size(); ++p) {
    configuration[results.parameters[p].name] = value_json(row.configuration[p]);
  }
  Json runtimes = Json::array();
  for (const double time : m.times) runtimes.push_back(time * kSecondsToMilliseconds);
  Json json = Json::object();
  if (m.finished_at > 0) json["timestamp"] = cache_time_stamp(m.finished_at);
  json["configuration"] = configuration;
  json["times"] = {{"compilation", m.compile_seconds * kSecondsToMilliseconds},
                   {"benchmark", m.measure_seconds * kSecondsToMilliseconds},
                   {"framework", m.tuner_seconds * kSecondsToMilliseconds},
                   {"search_algorithm", 0},
                   {"validation", m.verify_seconds * kSecondsToMilliseconds},
                   {"runtimes", runtimes}};
  json["invalidity"] = invalidity(m.status);
  json["correctness"] = m.status == Status::wrong_result ? 0 : 1;
  json["measurements"] = measurements_json(results, m);
  json["objectives"] = Json::array({results.objective});
  if (m.status != Status::ok) json["ergotune"] = {{"status", to_string(m.status)}};
  if (!m.message.empty()) json["error_message"] = m.message;
  return json;
}

}  // namespace

std::string to_kernel_tuner_cache(const ResultSet& results) {
  const std::string objective = cache_objective(results);
  std::string text = json_text(head_json(results, objective), 0);
  text.resize(text.size() - 2);  // "\n}"
  text += ",\n\"cache\": {";
  bool first = true;
  for (const StoredRow* row : one_per_configuration(results.rows)) {
    text += fmt::format("{}\n{}: {}", first ? "" : ",", json_text(Json(cache_key(row->configuration))),
                        json_text(entry_json(results, *row, objective)));
    first = false;
  }
  // The closing that Kernel Tuner writes, by which it and its dashboard recognise a closed file.
  text += first ? "\n}\n}" : "}\n}";
  return text;
}

std::string to_t4_results(const ResultSet& results) {
  Json list = Json::array();
  for (const StoredRow& row : results.rows) list.push_back(result_json(results, row));
  const Json json{{"metadata",
                   {{"timeunit", "milliseconds"},
                    {"kernel", results.kernel},
                    {"device", results.device},
                    {"provenance", to_string(results.provenance)},
                    {"ergotune", session_json(results)}}},
                  {"results", list},
                  {"schema_version", kSchemaVersion}};
  return json_text(json, 1) + "\n";
}

}  // namespace ergotune
