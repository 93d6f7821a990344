#include "store/sqlite/stored_session.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>

#include "base/json_text.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "ergotune/problem_file.hpp"
#include "store/cache/cache_quantities.hpp"
#include "store/formats/recording_builder.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune {

bool is_store(const std::filesystem::path& file) {
  constexpr std::string_view kBeginning = "SQLite format 3";
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return false;  // opening a FIFO would block
  std::ifstream stream(file, std::ios::binary);
  std::string beginning(kBeginning.size(), '\0');
  stream.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  return beginning == kBeginning;
}

SessionInfo pick_session(const Store& store, std::int64_t session) {
  const auto sessions = store.sessions();
  const SourcePlace place{store.file().string(), 0, 0};
  if (const auto warnings = store.warnings(); sessions.empty() && !warnings.empty())
    throw UserError(warnings.front(), place);
  if (sessions.empty()) throw UserError("this store has no sessions yet; \"ergotune tune\" makes one", place);
  if (session == 0) {
    // The session worked on last; sessions without rows come after those with rows.
    const auto later = [](const SessionInfo& a, const SessionInfo& b) {
      return std::pair(a.rows > 0, a.worked_at) < std::pair(b.rows > 0, b.worked_at);
    };
    return *std::ranges::max_element(sessions, later);
  }
  std::string known;
  for (const SessionInfo& info : sessions) {
    if (info.id == session) return info;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", info.id);
  }
  (void)store.session_info(session);  // throws where it is damaged
  throw UserError(fmt::format("this store has no session {}; it has {}", session, known), place);
}

std::optional<Problem> stored_problem(const Store& store, std::int64_t session) {
  const std::string document = store.document(session);
  if (document.empty() || document == "{}") return std::nullopt;
  try {
    return deserialise(document);
  } catch (const Error& error) {
    throw UserError(fmt::format("the stored problem cannot be read: {}", error.what()), {store.file().string(), 0, 0});
  }
}

std::vector<Parameter> stored_parameters(const SessionInfo& session, const std::optional<Problem>& problem) {
  std::vector<Parameter> parameters;
  for (const std::string& name : session.parameter_names) {
    Parameter parameter = recorded_parameter(name);
    if (problem) {
      for (const Parameter& described : problem->parameters) {
        if (described.name == name) parameter = described;
      }
    }
    parameter.range.reset();
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

Recording read_stored_session(const std::filesystem::path& file, std::int64_t session) {
  const Store store = Store::open(file, true);
  const SessionInfo info = pick_session(store, session);
  Recording recording;
  recording.file = file;
  recording.name = info.problem;
  recording.device = info.device;
  recording.objective = info.objective;
  recording.provenance = info.provenance;
  const auto environment = parse_json<nlohmann::json>(store.environment(info.id), false);
  if (environment.is_object() && environment.value("configurations", nlohmann::json()).is_number_unsigned())
    recording.space = environment["configurations"].get<std::uint64_t>();
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
    recording.constants = std::move(problem->constants);
    if (info.runs == 0) recording.objective = problem->objective;
  }
  RecordingBuilder rows(recording.parameters.size());
  DistinctValues values(recording.parameters.size());
  std::size_t row_number = 0;
  for (const StoredRow& row : store.results(info.id)) {
    const Measurement& m = row.measurement;
    rows.set(m);
    if (row.confirmed_for || row.searched)
      recording.confirmations[row_number] = {row.confirmed_for, row.rounds, row.certainty, row.searched};
    if (!m.warnings.empty()) recording.row_warnings[row_number] = m.warnings;
    if (!m.message.empty()) recording.messages[row_number] = m.message;
    ++row_number;
    rows.finish_row(values.positions(row.configuration), m.status,
                    {m.compile_seconds, m.verify_seconds, m.measure_seconds, m.tuner_seconds, true}, m.finished_at);
  }
  for (std::string& warning : store.warnings()) recording.warnings.push_back(std::move(warning));
  rows.finish(recording);
  values.finish(recording);
  return recording;
}

namespace {

int standing(Status status) { return status == Status::ok ? 2 : usable(status) ? 1 : 0; }

/// The rows of one configuration found so far.
struct Found {
  StoredRow* search = nullptr;     ///< the best of its search rows, the last of equal ones
  StoredRow* confirmed = nullptr;  ///< the last one, unless a search row followed
  std::int64_t run = 0;            ///< the run that measured the latest confirmation repeats, on `gpu`
  std::string_view gpu;
  int rounds = 0;
};

}  // namespace

std::string to_string(RowKind kind) {
  switch (kind) {
    case RowKind::confirmation:
      return "confirmation";
    case RowKind::confirmed:
      return "confirmed";
    case RowKind::reference:
      return "reference";
    case RowKind::search:
      break;
  }
  return "search";
}

std::vector<StoredRow> current_rows(std::vector<StoredRow> rows, const std::vector<RunInfo>& runs) {
  std::map<std::int64_t, const RunInfo*> run_of;
  for (const RunInfo& run : runs) run_of[run.id] = &run;
  const auto before_in_order = [](const Configuration* a, const Configuration* b) { return *a < *b; };
  std::map<const Configuration*, std::size_t, decltype(before_in_order)> seen(before_in_order);
  std::vector<Found> found;
  for (StoredRow& row : rows) {
    if (row.kind == RowKind::reference) continue;
    if (row.kind == RowKind::confirmation && !seen.contains(&row.configuration)) continue;
    const auto [place, added] = seen.emplace(&row.configuration, found.size());
    if (added) found.emplace_back();
    Found& of = found[place->second];
    if (row.kind == RowKind::confirmation) {
      if (of.run != row.run || of.gpu != row.gpu) of.rounds = 0;
      of.run = row.run;
      of.gpu = row.gpu;
      ++of.rounds;
      continue;
    }
    if (row.kind == RowKind::confirmed) {
      // A failed confirmation does not replace the search's result, unless the output was wrong.
      if (of.search && !usable(row.measurement.status) && row.measurement.status != Status::wrong_result) continue;
      if (const auto run = run_of.find(row.run); run != run_of.end()) {
        row.confirmed_for = run->second->objective;
        row.rounds = of.rounds > 0 ? of.rounds : run->second->confirmed;
        // not of one that this run did not measure, but brought to its load
        if (of.rounds == 0 || of.run == row.run) row.certainty = run->second->certainty;
      }
      of.confirmed = &row;
      continue;
    }
    const bool retried = std::exchange(of.confirmed, nullptr) != nullptr;
    const int before = of.search ? standing(of.search->measurement.status) : -1;
    if (retried || standing(row.measurement.status) >= before) of.search = &row;
  }
  std::vector<StoredRow> result;
  result.reserve(found.size());
  for (const Found& of : found) {
    if (of.confirmed && of.search) of.confirmed->searched = std::move(of.search->measurement);
    const auto run = run_of.find((of.search ? of.search : of.confirmed)->run);
    result.push_back(std::move(of.confirmed ? *of.confirmed : *of.search));
    if (run != run_of.end()) result.back().searched_for = run->second->objective;
  }
  return result;
}

}  // namespace ergotune
