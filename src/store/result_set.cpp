#include <fmt/format.h>

#include <algorithm>

#include "ergotune/base/error.hpp"
#include "ergotune/problem/load.hpp"
#include "ergotune/store/export.hpp"
#include "store/cache_quantities.hpp"

namespace ergotune {

namespace {

SessionInfo pick_session(const Store& store, std::int64_t session) {
  const auto sessions = store.sessions();
  const SourcePlace place{store.file().string(), 0, 0};
  if (sessions.empty()) throw UserError("this store has no sessions yet; \"ergotune tune\" makes one", place);
  if (session == 0) return sessions.back();
  std::string known;
  for (const SessionInfo& info : sessions) {
    if (info.id == session) return info;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", info.id);
  }
  throw UserError(fmt::format("this store has no session {}; it has {}", session, known), place);
}

/// What the stored problem says of the parameters; those that it does not know keep their names alone.
void take_problem(const std::string& document, bool has_runs, ResultSet& results) {
  if (document.empty() || document == "{}") return;
  const Problem problem = deserialise(document);
  if (!problem.kernel().function.text().empty()) results.kernel = problem.kernel().function.text();
  results.constants = problem.constants;
  results.metrics = problem.metrics;
  // Of stores without runs the problem as it was stored knows what was wanted, and in which direction.
  if (!has_runs) results.goal = problem.objective;
  for (Parameter& parameter : results.parameters) {
    for (const Parameter& described : problem.parameters) {
      if (described.name == parameter.name) parameter = described;
    }
    parameter.range.reset();
  }
}

void add_values_met(ResultSet& results) {
  for (std::size_t p = 0; p < results.parameters.size(); ++p) {
    auto& values = results.parameters[p].values;
    const auto known = static_cast<std::ptrdiff_t>(values.size());
    for (const StoredRow& row : results.rows) {
      if (std::find(values.begin(), values.end(), row.configuration[p]) == values.end()) {
        values.push_back(row.configuration[p]);
      }
    }
    std::sort(values.begin() + known, values.end());
  }
}

}  // namespace

ResultSet result_set(const Store& store, std::int64_t session) {
  const SessionInfo info = pick_session(store, session);
  ResultSet results;
  results.problem = results.kernel = info.problem;
  results.device = info.device;
  results.goal = info.objective;
  results.provenance = info.provenance;
  results.environment = store.environment(info.id);
  results.rows = store.results(info.id);
  for (const std::string& name : info.parameter_names) {
    Parameter parameter;
    parameter.name = name;
    parameter.kind = parameter_kind(name);
    results.parameters.push_back(std::move(parameter));
  }
  take_problem(store.document(info.id), info.runs > 0, results);
  results.objective = results.goal.text;
  add_values_met(results);
  return results;
}

ResultSet result_set(const Recording& recording) {
  ResultSet results;
  results.problem = results.kernel = recording.name;
  results.device = recording.device;
  results.goal = recording.objective;
  results.objective = results.goal.text;
  results.provenance = Provenance::replayed;
  results.parameters = recording.parameters;
  results.metrics = recording.metrics;
  for (std::size_t row = 0; row < recording.size(); ++row) {
    results.rows.push_back(
        {static_cast<std::int64_t>(row), recording.configuration(row), recording.measurement(row)});
  }
  return results;
}

}  // namespace ergotune
