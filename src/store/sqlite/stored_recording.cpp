#include "ergotune/problem.hpp"
#include "store/formats/recording_readers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ergotune/error.hpp"
#include "store/formats/recording_builder.hpp"
#include "store/sqlite/stored_session.hpp"

namespace ergotune {

Recording read_stored_session(const std::filesystem::path& file, std::int64_t session) {
  const Store store = Store::open(file, true);
  const SessionInfo info = pick_session(store, session);
  Recording recording;
  recording.file = file;
  recording.name = info.problem;
  recording.device = info.device;
  recording.objective = info.objective;
  std::optional<Problem> problem;
  try {
    problem = stored_problem(store, info.id);
  } catch (const UserError& error) {
    recording.warnings.push_back(error.message());
  }
  recording.parameters = stored_parameters(info, problem);
  if (problem) {
    recording.restrictions = std::move(problem->restrictions);
    recording.restrictions_known = true;
    recording.metrics = std::move(problem->metrics);
    if (info.runs == 0) recording.objective = problem->objective;
  }
  RecordingBuilder rows(recording.parameters.size());
  DistinctValues values(recording.parameters.size());
  std::size_t row_number = 0;
  for (const StoredRow& row : store.results(info.id)) {
    const Measurement& m = row.measurement;
    rows.set(m);
    if (row.confirmed_for) recording.confirmed[row_number] = *row.confirmed_for;
    if (row.certainty) recording.certainty[row_number] = *row.certainty;
    if (row.searched) recording.searched[row_number] = *row.searched;
    if (!m.message.empty()) recording.messages[row_number] = m.message;
    ++row_number;
    rows.finish_row(values.positions(row.configuration), m.status,
                    {m.compile_seconds, m.verify_seconds, m.measure_seconds, m.tuner_seconds, true});
  }
  for (std::string& warning : store.warnings()) recording.warnings.push_back(std::move(warning));
  rows.finish(recording);
  values.finish(recording);
  return recording;
}

}  // namespace ergotune
