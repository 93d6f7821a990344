#include "search/known_names.hpp"

#include <algorithm>

#include "problem/program.hpp"
#include "problem/tables/quantity.hpp"

namespace ergotune {

std::vector<Metric> with_names(std::vector<Metric> metrics, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool known = quantity_info(name) ||
                       std::any_of(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.name == name; });
    if (!known) metrics.push_back({name, Expression::constant(0), ""});
  }
  return metrics;
}

std::vector<std::string> column_names(const Recording& recording) {
  std::vector<std::string> names;
  for (const RecordedColumn& column : recording.columns) names.push_back(column.name);
  return names;
}

std::vector<Metric> known_metrics(const Problem& problem) {
  std::vector<std::string> names;
  if (problem.program)
    for (const auto& [name, pattern] : problem.program->output) names.push_back(name);
  return with_names(problem.metrics, names);
}

}  // namespace ergotune
