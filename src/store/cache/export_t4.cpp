// T4 results.
#include <cmath>

#include "problem/tables/quantity.hpp"
#include "store/cache/cache_quantities.hpp"
#include "store/formats/export.hpp"
#include "store/formats/json_values.hpp"

namespace ergotune {

namespace {

constexpr const char* kSchemaVersion = "1.0.0";
constexpr double kSecondsToMilliseconds = 1e3;

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
  }
  for (const auto& [name, value] : m.metrics) {
    if (!std::isfinite(value)) continue;
    list.push_back({{"name", name}, {"value", value}, {"unit", unit_of(name, results.metrics)}});
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
  return json;
}

}  // namespace

std::string to_t4_results(const ResultSet& results) {
  Json list = Json::array();
  for (const StoredRow& row : results.rows) list.push_back(result_json(results, row));
  const Json json{{"metadata",
                   {{"timeunit", "milliseconds"},
                    {"kernel", results.kernel},
                    {"device", results.device},
                    {"provenance", to_string(results.provenance)}}},
                  {"results", list},
                  {"schema_version", kSchemaVersion}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ergotune
