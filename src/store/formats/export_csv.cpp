// Comma-separated values (RFC 4180).
#include <fmt/format.h>

#include <cmath>
#include <set>

#include "store/formats/export.hpp"

namespace ergotune {

namespace {

std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

/// The shortest text that is read back as the same number; empty for NaN and infinity.
std::string cell(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

/// Whether the degrees of freedom differ from n - 1, which readers assume.
bool has_other_degrees(const Quantity& quantity) {
  return quantity.standard_error > 0 && quantity.degrees != static_cast<double>(quantity.n) - 1;
}

}  // namespace

std::string to_csv(const ResultSet& results) {
  std::set<std::string> quantities, with_degrees, metrics;
  for (const StoredRow& row : results.rows) {
    for (const auto& [name, quantity] : row.measurement.quantities) {
      quantities.insert(name);
      if (has_other_degrees(quantity)) with_degrees.insert(name);
    }
    for (const auto& [name, value] : row.measurement.metrics) metrics.insert(name);
  }
  std::string text;
  for (const Parameter& parameter : results.parameters) text += cell(parameter.name) + ",";
  text += "status";
  for (const std::string& name : quantities) {
    text += fmt::format(",{0},{0}_standard_error,{0}_n", name);
    if (with_degrees.contains(name)) text += fmt::format(",{}_degrees", name);
  }
  for (const std::string& name : metrics) text.append(1, ',').append(cell(name));
  text += ",compile_seconds,verify_seconds,measure_seconds,tuner_seconds,provenance,finished_at,message\n";
  for (const StoredRow& row : results.rows) {
    const Measurement& m = row.measurement;
    for (const Value& value : row.configuration) text += cell(value.to_string()) + ",";
    text += to_string(m.status);
    for (const std::string& name : quantities) {
      const auto found = m.quantities.find(name);
      text += found == m.quantities.end() ? ",,,"
                                          : fmt::format(",{},{},{}", cell(found->second.value),
                                                        cell(found->second.standard_error), found->second.n);
      if (with_degrees.contains(name))
        text.append(1, ',').append(found == m.quantities.end() ? std::string() : cell(found->second.degrees));
    }
    for (const std::string& name : metrics) {
      const auto found = m.metrics.find(name);
      text.append(1, ',').append(found == m.metrics.end() ? std::string() : cell(found->second));
    }
    text += fmt::format(",{},{},{},{},{},{},{}\n", m.compile_seconds, m.verify_seconds, m.measure_seconds,
                        m.tuner_seconds, to_string(results.provenance), cell(m.finished_at), cell(m.message));
  }
  return text;
}

}  // namespace ergotune
