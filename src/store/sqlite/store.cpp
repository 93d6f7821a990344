#include "store/sqlite/store.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/json_text.hpp"
#include "base/process/file_lock.hpp"
#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "store/formats/json_values.hpp"
#include "store/sqlite/database.hpp"
#include "store/sqlite/row_scan.hpp"

namespace ergotune {

struct Store::State {
  State(const std::filesystem::path& file, bool read_only) : database(file, read_only) {}
  ~State();

  Database database;
  /// Descriptions of unreadable rows, by table and row.
  std::map<std::pair<std::string, std::int64_t>, std::string> damaged;
  std::optional<Statement> insert_running, delete_running, insert_measurement;
  std::unique_ptr<Flusher> flusher;  // last member, so that it ends before the connection is closed

  /// Inserts the row of a measurement and removes the record of its start. Call it inside a transaction.
  void insert(std::int64_t session, const StoredRow& row);
  void wrote() {
    if (flusher) flusher->wrote();
  }
  void commit(Transaction& transaction) {
    transaction.commit();
    wrote();
  }
  /// Executes one statement outside of a transaction.
  void change(Statement& bound) {
    database.require_in_place();
    bound.run();
    wrote();
  }
  template <class... Value>
  void change(const std::string& sql, const Value&... values) {
    Statement statement(database, sql, values...);
    change(statement);
  }
  std::string text_of_session(const char* query, std::int64_t session) const;

  void prepare_writing() {
    const bool log = uses_write_ahead_log(database.file());
    // NORMAL: a commit is held by the kernel, and the log reaches the disk before the database does; the flusher writes
    // it there soon. Without a log, each commit waits for the disk.
    database.execute(log ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = TRUNCATE");
    database.execute(log ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL");
    database.execute("PRAGMA foreign_keys = ON");
    prepare_schema(database);
    if (log) flusher = std::make_unique<Flusher>(database.file().string() + "-wal");
  }

  /// A write-ahead log needs memory shared by all its readers, which network filesystems do not provide
  /// (https://sqlite.org/wal.html). ERGOTUNE_STORE_JOURNAL decides if the filesystem cannot be recognised.
  static bool uses_write_ahead_log(const std::filesystem::path& file) {
    const char* wanted = std::getenv("ERGOTUNE_STORE_JOURNAL");
    const std::string_view mode = wanted ? wanted : "";
    if (mode == "wal") return true;
    if (mode == "truncate") return false;
    if (!mode.empty())
      throw UserError(fmt::format("ERGOTUNE_STORE_JOURNAL is \"wal\" or \"truncate\", not \"{}\"", mode));
    return network_filesystem(folder_of(file)).empty();
  }
};

namespace {

std::string direction_text(const ObjectiveSpec& objective) {
  if (!objective.direction) return {};
  return *objective.direction == Direction::maximise ? "max" : "min";
}

ObjectiveSpec objective_from(std::string text, const std::string& direction) {
  ObjectiveSpec objective;
  objective.text = std::move(text);
  if (!direction.empty()) objective.direction = direction == "max" ? Direction::maximise : Direction::minimise;
  return objective;
}

std::string session_query(const std::string& condition) {
  return "SELECT id, problem, device, conditions, identity_hash, provenance, created_at, parameter_names, objective, "
         "(SELECT count(*) FROM measurements m WHERE m.session = s.id), (SELECT count(*) FROM runs r WHERE r.session = "
         "s.id), (SELECT max(started_at) FROM runs r WHERE r.session = s.id), (SELECT objective FROM runs r WHERE "
         "r.session = s.id ORDER BY id DESC LIMIT 1), (SELECT direction FROM runs r WHERE r.session = s.id ORDER BY id "
         "DESC LIMIT 1), device_identity FROM sessions s " +
         condition;
}

SessionInfo session_row(const Statement& row) {
  SessionInfo info;
  info.id = row.integer(0);
  info.problem = row.text(1);
  info.device = row.text(2);
  info.conditions = row.text(3);
  info.identity_hash = row.text(4);
  info.provenance = provenance_named(row.text(5)).value_or(Provenance::measured);
  info.created_at = row.real(6);
  info.parameter_names = strings_from(row.text(7));
  info.objective = objective_from(row.text(8), {});
  info.rows = static_cast<std::uint64_t>(row.integer(9));
  info.runs = static_cast<std::uint64_t>(row.integer(10));
  info.device_identity = row.text(14);
  info.worked_at = info.created_at;
  if (info.runs > 0) {
    info.worked_at = row.real(11);
    info.objective = objective_from(row.text(12), row.text(13));
  }
  return info;
}

}  // namespace

std::string SessionKey::hash() const {
  // Lengths distinguish "ab" + "c" from "a" + "bc".
  std::string text = "identity 2:";
  for (const std::string& part : {problem_document, device, device_identity, conditions, to_string(provenance)})
    text += fmt::format("{}:", part.size()) + part;
  return content_hash(text);
}

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Store Store::open(const std::filesystem::path& file, bool read_only) {
  check_store_header(file);
  std::error_code error;
  if (read_only && !std::filesystem::exists(file, error)) {
    throw UserError("there is no store here; \"ergotune tune\" makes one", {file.string(), 0, 0});
  }
  auto state = std::make_unique<State>(file, read_only);
  if (!read_only) state->prepare_writing();
  check_schema(state->database);
  if (!read_only) {
    state->insert_running.emplace(state->database,
                                  "INSERT INTO running (session, configuration, since) VALUES (?, ?, ?) ON CONFLICT "
                                  "(session, configuration) DO UPDATE SET since = excluded.since, under_way = 1");
    state->delete_running.emplace(state->database, "DELETE FROM running WHERE session = ? AND configuration = ?");
    state->insert_measurement.emplace(
        state->database,
        "INSERT INTO measurements (session, configuration, status, message, quantities, metrics, metric_errors, "
        "warnings, times, compile_seconds, verify_seconds, measure_seconds, tuner_seconds, finished_at, kind, run, "
        "stage, board) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  }
  return Store(std::move(state));
}

std::int64_t Store::session(const SessionKey& identity, const std::vector<std::string>& parameter_names,
                            const std::string& objective, const std::string& environment_json,
                            const std::string& document) {
  const std::string hash = identity.hash();
  Transaction transaction(state_->database);
  Statement find(state_->database, "SELECT id FROM sessions WHERE identity_hash = ?", hash);
  if (find.step()) {
    const std::int64_t id = find.integer(0);
    find.reset();
    // The current problem: comments, metrics and objective may have changed.
    Statement(state_->database, "UPDATE sessions SET environment = ?, document = ? WHERE id = ?", environment_json,
              document, id)
        .run();
    state_->commit(transaction);
    return id;
  }
  Statement(state_->database,
            "INSERT INTO sessions (identity_hash, problem, device, device_identity, conditions, provenance, "
            "created_at, parameter_names, objective, environment, document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            hash, identity.problem, identity.device, identity.device_identity, identity.conditions,
            to_string(identity.provenance), wall_seconds(), json_text(Json(parameter_names)), objective,
            environment_json, document)
      .run();
  const std::int64_t id = state_->database.last_row();
  state_->commit(transaction);
  return id;
}

namespace {

void add_differing_constants(Statement rows, std::vector<SessionInfo>& sessions) {
  std::map<std::int64_t, Constants> constants;
  while (rows.step()) {
    const Json values = Json::parse(rows.text(1), nullptr, false);
    if (!values.is_object()) continue;
    for (const auto& [name, value] : values.items())
      if (value.is_primitive() && !value.is_null()) constants[rows.integer(0)][name] = value_from(value);
  }
  std::map<std::pair<std::string, std::string>, std::set<Value>> values;  // by problem and name
  for (const SessionInfo& info : sessions)
    for (const auto& [name, value] : constants[info.id]) values[{info.problem, name}].insert(value);
  for (SessionInfo& info : sessions)
    for (const auto& [name, value] : constants[info.id])
      if (values[{info.problem, name}].size() > 1) info.constants[name] = value;
}

}  // namespace

std::vector<SessionInfo> Store::sessions() const {
  std::vector<SessionInfo> result;
  Statement rows(state_->database, session_query("ORDER BY id"));
  while (rows.step()) {
    try {
      result.push_back(session_row(rows));
    } catch (const Error& error) {
      state_->damaged[{"sessions", rows.integer(0)}] = error.what();
    }
  }
  if (result.size() > 1)
    add_differing_constants(
        Statement(state_->database,
                  "SELECT id, json_extract(document, '$.constants') FROM sessions WHERE json_valid(document)"),
        result);
  return result;
}

std::optional<SessionInfo> Store::session_info(std::int64_t id) const {
  Statement rows(state_->database, session_query("WHERE id = ?"), id);
  if (!rows.step()) return std::nullopt;
  try {
    return session_row(rows);
  } catch (const Error& error) {
    throw UserError(fmt::format("session {} is damaged ({})", id, error.what()), {file().string(), 0, 0});
  }
}

std::string Store::State::text_of_session(const char* query, std::int64_t session) const {
  Statement rows(database, query, session);
  return rows.step() ? rows.text(0) : std::string();
}

std::string Store::environment(std::int64_t session) const {
  return state_->text_of_session("SELECT environment FROM sessions WHERE id = ?", session);
}

std::string Store::document(std::int64_t session) const {
  return state_->text_of_session("SELECT document FROM sessions WHERE id = ?", session);
}

void Store::note(std::int64_t session, const std::string& key, const std::string& json) {
  Json document = Json::parse(environment(session), nullptr, false);
  if (!document.is_object()) document = Json::object();
  document[key] = Json::parse(json);
  state_->change("UPDATE sessions SET environment = ? WHERE id = ?", json_text(document), session);
}

void Store::State::insert(std::int64_t session, const StoredRow& stored) {
  const std::string text = configuration_text(stored.configuration);
  const Measurement& m = stored.measurement;
  Json times = Json::array();
  for (const double time : m.times) times.push_back(number_json(time));
  insert_measurement
      ->with(session, text, to_string(m.status), m.message, quantities_text(m), numbers_text(m.metrics),
             metric_errors_text(m), json_text(Json(m.warnings)), json_text(times), m.compile_seconds, m.verify_seconds,
             m.measure_seconds, m.tuner_seconds, m.finished_at, to_string(stored.kind), stored.run, stored.stage,
             stored.gpu)
      .run();
  delete_running->with(session, text).run();
}

void Store::add(std::int64_t session, const Configuration& configuration, const Measurement& measurement) {
  StoredRow row;
  row.configuration = configuration;
  row.measurement = measurement;
  add(session, row);
}

void Store::add(std::int64_t session, const StoredRow& row) {
  Transaction transaction(state_->database);
  state_->insert(session, row);
  state_->commit(transaction);
}

void Store::add_all(std::int64_t session, const std::vector<StoredRow>& rows) {
  Transaction transaction(state_->database);
  for (const StoredRow& row : rows) state_->insert(session, row);
  state_->commit(transaction);
}

void Store::set_metrics(const std::vector<StoredRow>& rows) {
  Transaction transaction(state_->database);
  Statement update(state_->database, "UPDATE measurements SET metrics = ?, metric_errors = ? WHERE id = ?");
  for (const StoredRow& row : rows)
    update.with(numbers_text(row.measurement.metrics), metric_errors_text(row.measurement), row.id).run();
  state_->commit(transaction);
}

std::uint64_t Store::configurations(std::int64_t session) const {
  Statement count(state_->database, "SELECT count(DISTINCT configuration) FROM measurements WHERE session = ?",
                  session);
  count.step();
  return static_cast<std::uint64_t>(count.integer(0));
}

std::vector<StoredRow> Store::rows(std::int64_t session) const {
  std::vector<StoredRow> result;
  Statement rows(state_->database,
                 fmt::format("SELECT {} FROM measurements WHERE session = ? ORDER BY id", kStoredRowColumns), session);
  const auto info = session_info(session);
  while (rows.step()) {
    try {
      StoredRow row = stored_row(rows);
      if (info && row.configuration.size() != info->parameter_names.size())
        throw Error(fmt::format("{} values for {} parameters", row.configuration.size(), info->parameter_names.size()));
      result.push_back(std::move(row));
    } catch (const Error& error) {
      state_->damaged[{"measurements", rows.integer(0)}] = error.what();
    }
  }
  return result;
}

std::vector<std::string> Store::warnings() const {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> list;
  for (const auto& [row, why] : state_->damaged) {
    if (list.size() == kMost) {
      list.push_back(fmt::format("{} more damaged rows are left out", state_->damaged.size() - kMost));
      break;
    }
    const auto& [table, id] = row;
    std::string warning = fmt::format("row {} of the table {} is damaged ({}) and left out", id, table, why);
    if (table == "measurements")
      warning += fmt::format("; remove it with: sqlite3 {} 'DELETE FROM measurements WHERE id = {}'",
                             shell_word(file().string()), id);
    list.push_back(std::move(warning));
  }
  return list;
}

namespace {
std::mutex lost_mutex;
std::vector<std::filesystem::path> lost_stores;
}  // namespace

Store::State::~State() {
  if (!flusher || database.is_there()) return;
  database.settle();
  const std::lock_guard lock(lost_mutex);
  lost_stores.push_back(database.file());
}

std::vector<std::filesystem::path> take_lost_stores() {
  const std::lock_guard lock(lost_mutex);
  return std::exchange(lost_stores, {});
}

std::vector<StoredRow> Store::results(std::int64_t session) const { return current_rows(rows(session), runs(session)); }

std::int64_t Store::begin_run(std::int64_t session, const RunInfo& info) {
  Statement(state_->database,
            "INSERT INTO runs (session, started_at, objective, direction, strategy, plan, seed, phase) VALUES (?, ?, "
            "?, ?, ?, ?, ?, ?)",
            session, wall_seconds(), info.objective.text, direction_text(info.objective), info.strategy, info.plan,
            std::to_string(info.seed), info.phase)
      .run();
  state_->wrote();
  return state_->database.last_row();
}

void Store::set_phase(std::int64_t run, const std::string& phase) {
  state_->change("UPDATE runs SET phase = ? WHERE id = ?", phase, run);
}

void Store::set_confirmed(std::int64_t run, int rounds) {
  state_->change("UPDATE runs SET confirmed = ? WHERE id = ?", static_cast<std::int64_t>(rounds), run);
}

void Store::set_certainty(std::int64_t run, const Certainty& certainty) {
  state_->change("UPDATE runs SET probability_best = ?, expected_loss = ? WHERE id = ?", certainty.probability_best,
                 certainty.expected_loss, run);
}

void Store::end_run(std::int64_t run, const std::string& why) {
  state_->change("UPDATE runs SET ended_at = ?, ended = ? WHERE id = ?", wall_seconds(), why, run);
}

std::vector<RunInfo> Store::runs(std::int64_t session) const {
  std::vector<RunInfo> result;
  Statement rows(state_->database,
                 "SELECT id, session, started_at, ended_at, objective, direction, strategy, plan, seed, phase, ended, "
                 "confirmed, probability_best, expected_loss FROM runs WHERE session = ? ORDER BY id",
                 session);
  while (rows.step()) {
    RunInfo run;
    run.id = rows.integer(0);
    run.session = rows.integer(1);
    run.started_at = rows.real(2);
    run.ended_at = rows.real(3);
    run.objective = objective_from(rows.text(4), rows.text(5));
    run.strategy = rows.text(6);
    run.plan = rows.text(7);
    run.seed = std::strtoull(rows.text(8).c_str(), nullptr, 10);
    run.phase = rows.text(9);
    run.ended = rows.text(10);
    run.confirmed = static_cast<int>(rows.integer(11));
    if (!rows.is_null(12)) run.certainty = Certainty{rows.real(12), rows.real(13)};
    result.push_back(std::move(run));
  }
  return result;
}

void Store::flush() {
  if (state_->flusher) state_->flusher->wait();
}

const std::filesystem::path& Store::file() const { return state_->database.file(); }

SessionLock::SessionLock(const std::filesystem::path& store, std::int64_t session) {
  const std::filesystem::path file = fmt::format("{}-session{}.lock", store.string(), session);
  lock_ = std::make_unique<FileLock>(file);
  std::error_code failure;
  const bool taken = lock_->take(failure);
  if (failure)
    throw UserError(fmt::format("cannot make the lock of a session: {}", failure.message()), {file.string(), 0, 0});
  if (taken) return;
  const long pid = lock_->holder();
  throw UserError(fmt::format("session {} is being tuned by {}; wait until it has ended (then this command goes on "
                              "from its results), or give this run another store with --store",
                              session, pid > 0 ? fmt::format("process {}", pid) : std::string("another process")),
                  {store.string(), 0, 0});
}

SessionLock::~SessionLock() = default;

namespace {

/// nullopt if damaged: the configuration is then measured again.
std::optional<Configuration> readable_configuration(const std::string& text) {
  try {
    return configuration_from(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

void Store::record_start(std::int64_t session, const Configuration& configuration, const Configuration* ended) {
  Transaction transaction(state_->database);
  if (ended) state_->delete_running->with(session, configuration_text(*ended)).run();
  state_->insert_running->with(session, configuration_text(configuration), wall_seconds()).run();
  state_->commit(transaction);
}

std::vector<Configuration> Store::unfinished(std::int64_t session) const {
  std::vector<Configuration> result;
  Statement rows(state_->database,
                 "SELECT configuration FROM running WHERE session = ? AND under_way = 1 ORDER BY since", session);
  while (rows.step()) {
    if (auto configuration = readable_configuration(rows.text(0))) result.push_back(std::move(*configuration));
  }
  return result;
}

std::vector<Configuration> Store::note_deaths(std::int64_t session) {
  Transaction transaction(state_->database);
  Statement(state_->database,
            "UPDATE running SET under_way = 0, deaths = deaths + 1 WHERE session = ? AND under_way = 1", session)
      .run();
  std::vector<Configuration> culprits;
  {
    Statement rows(state_->database,
                   "SELECT configuration FROM running WHERE session = ? AND deaths > 1 ORDER BY since", session);
    while (rows.step()) {
      if (auto configuration = readable_configuration(rows.text(0))) culprits.push_back(std::move(*configuration));
    }
  }
  state_->commit(transaction);
  return culprits;
}

void Store::withdraw(std::int64_t session, const Configuration& configuration) {
  state_->change(state_->delete_running->with(session, configuration_text(configuration)));
}

}  // namespace ergotune
