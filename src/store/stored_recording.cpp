#include "store/stored_recording.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ergotune/base/error.hpp"
#include "ergotune/problem/load.hpp"
#include "ergotune/store/store.hpp"
#include "store/cache_quantities.hpp"
#include "store/distinct_values.hpp"

namespace ergotune {

namespace {

SessionInfo pick_session(const Store& store, std::int64_t session) {
  const auto sessions = store.sessions();
  const SourcePlace place{store.file().string(), 0, 0};
  if (sessions.empty()) throw UserError("this store has no sessions yet", place);
  if (session == 0) return sessions.back();
  for (const SessionInfo& info : sessions) {
    if (info.id == session) return info;
  }
  std::string known;
  for (const SessionInfo& info : sessions) known += fmt::format("{}{}", known.empty() ? "" : ", ", info.id);
  throw UserError(fmt::format("this store has no session {}; it has {}", session, known), place);
}

void take_problem(const std::string& document, bool has_runs, Recording& recording) {
  if (document.empty() || document == "{}") return;
  try {
    Problem problem = deserialise(document);
    recording.restrictions = std::move(problem.restrictions);
    recording.restrictions_known = true;
    recording.metrics = std::move(problem.metrics);
    if (!has_runs) recording.objective = problem.objective;
    for (Parameter& parameter : recording.parameters) {
      for (Parameter& described : problem.parameters) {
        if (described.name == parameter.name) parameter = std::move(described);
      }
      if (parameter.range) parameter.range.reset();  // its values are those that were measured
    }
  } catch (const Error& error) {
    recording.warnings.push_back(fmt::format("the stored problem cannot be read: {}", error.what()));
  }
}

}  // namespace

Recording read_stored_session(const std::filesystem::path& file, std::int64_t session) {
  const Store store = Store::open(file, true);
  const SessionInfo info = pick_session(store, session);
  Recording recording;
  recording.file = file;
  recording.name = info.problem;
  recording.device = info.device;
  recording.objective = info.objective;
  for (const std::string& name : info.parameter_names) {
    Parameter parameter;
    parameter.name = name;
    parameter.kind = parameter_kind(name);
    recording.parameters.push_back(std::move(parameter));
  }
  take_problem(store.document(info.id), info.runs > 0, recording);
  RecordingBuilder rows(recording.parameters.size());
  DistinctValues values(recording.parameters.size());
  std::size_t row_number = 0;
  for (const StoredRow& row : store.results(info.id)) {
    const Measurement& m = row.measurement;
    for (const auto& [name, quantity] : m.quantities) {
      rows.set(rows.column(name, false), quantity.value, quantity.standard_error,
               static_cast<std::uint32_t>(std::max<std::int64_t>(quantity.n, 1)));
    }
    for (const auto& [name, value] : m.metrics) {
      rows.set(rows.column(name, true), value, m.standard_error(name), 1);
    }
    if (row.confirmed_for) recording.confirmed[row_number] = *row.confirmed_for;
    ++row_number;
    rows.finish_row(values.positions(row.configuration), m.status,
                    {m.compile_seconds, m.verify_seconds, m.measure_seconds, m.tuner_seconds, true});
  }
  rows.finish(recording);
  values.finish(recording);
  return recording;
}

}  // namespace ergotune
