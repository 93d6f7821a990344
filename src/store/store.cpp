#include "ergotune/store/store.hpp"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <optional>

#include "ergotune/base/clock.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/base/hash.hpp"
#include "store/database.hpp"
#include "store/flusher.hpp"
#include "store/json_values.hpp"

namespace ergotune {

namespace {

constexpr std::int64_t kApplicationId = 0x4552474f;  // "ERGO"
constexpr std::int64_t kSchemaVersion = 1;

constexpr const char* kSchema = R"sql(
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY,
  identity_hash TEXT NOT NULL UNIQUE,
  problem TEXT NOT NULL,
  device TEXT NOT NULL,
  device_identity TEXT NOT NULL,
  conditions TEXT NOT NULL,
  provenance TEXT NOT NULL,
  created_at REAL NOT NULL,         -- s since the epoch
  parameter_names TEXT NOT NULL,    -- JSON list
  objective TEXT NOT NULL,
  environment TEXT NOT NULL,        -- JSON
  document TEXT NOT NULL            -- the whole problem, JSON
);
CREATE TABLE measurements (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL REFERENCES sessions(id),
  configuration TEXT NOT NULL,      -- JSON list, in the order of parameter_names
  status TEXT NOT NULL,
  message TEXT NOT NULL,
  quantities TEXT NOT NULL,         -- JSON {name: {value, standard_error, n, method, provenance, sensor}}, SI units
  metrics TEXT NOT NULL,            -- JSON {name: value}
  metric_errors TEXT NOT NULL,      -- JSON {name: standard error}
  warnings TEXT NOT NULL,           -- JSON list
  times TEXT NOT NULL,              -- JSON list, s
  compile_seconds REAL NOT NULL, verify_seconds REAL NOT NULL,
  measure_seconds REAL NOT NULL, tuner_seconds REAL NOT NULL,
  finished_at REAL NOT NULL         -- s since the epoch
);
CREATE INDEX measurements_by_session ON measurements(session, id);
-- What is running right now, so that a crash of everything is known by its culprit.
CREATE TABLE running (
  session INTEGER NOT NULL REFERENCES sessions(id),
  configuration TEXT NOT NULL,
  since REAL NOT NULL,
  PRIMARY KEY (session, configuration)
) WITHOUT ROWID;
)sql";

constexpr const char* kSessionColumns =
    "SELECT id, problem, device, conditions, identity_hash, provenance, created_at, parameter_names, "
    "objective, "
    "(SELECT count(*) FROM measurements m WHERE m.session = s.id) FROM sessions s ";

Provenance provenance_named(const std::string& name) {
  for (const Provenance provenance : {Provenance::replayed, Provenance::simulated, Provenance::modelled}) {
    if (to_string(provenance) == name) return provenance;
  }
  return Provenance::measured;
}

std::int64_t pragma(const Database& database, const std::string& name) {
  Statement statement(database, "PRAGMA " + name);
  return statement.step() ? statement.integer(0) : 0;
}

void check_header(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw UserError("this is a folder, not a store", {file.string(), 0, 0});
  char header[16] = {};
  std::ifstream stream(file, std::ios::binary);
  stream.read(header, sizeof header);
  if (stream.gcount() > 0 && std::string_view(header, static_cast<std::size_t>(stream.gcount())) !=
                                 std::string_view("SQLite format 3\0", 16)) {
    throw UserError("this is not an ergotune store; name another file with --store", {file.string(), 0, 0});
  }
}

void prepare_schema(const Database& database) {
  Transaction transaction(database);
  const std::int64_t application = pragma(database, "application_id");
  const std::int64_t version = pragma(database, "user_version");
  const SourcePlace place{database.file().string(), 0, 0};
  if (application == 0 && version == 0) {
    Statement tables(database, "SELECT count(*) FROM sqlite_master");
    if (tables.step() && tables.integer(0) > 0) {
      throw UserError("this is an SQLite database of another program; name another file with --store", place);
    }
    tables.reset();
    database.execute(kSchema);
    database.execute(fmt::format("PRAGMA application_id = {}", kApplicationId));
    database.execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
  } else if (application != kApplicationId) {
    throw UserError("this is an SQLite database of another program; name another file with --store", place);
  }
  transaction.commit();
}

void check_schema(const Database& database) {
  const SourcePlace place{database.file().string(), 0, 0};
  if (pragma(database, "application_id") != kApplicationId) {
    throw UserError("this is an SQLite database of another program", place);
  }
  const std::int64_t version = pragma(database, "user_version");
  if (version > kSchemaVersion) {
    throw UserError(
        fmt::format("this store has schema {}, and this ergotune knows up to {}: use a newer ergotune",
                    version, kSchemaVersion),
        place);
  }
}

SessionInfo session_row(const Statement& row) {
  SessionInfo info;
  info.id = row.integer(0);
  info.problem = row.text(1);
  info.device = row.text(2);
  info.conditions = row.text(3);
  info.identity_hash = row.text(4);
  info.provenance = provenance_named(row.text(5));
  info.created_at = row.real(6);
  info.parameter_names = Json::parse(row.text(7)).get<std::vector<std::string>>();
  info.objective = row.text(8);
  info.rows = static_cast<std::uint64_t>(row.integer(9));
  return info;
}

}  // namespace

std::string SessionIdentity::hash() const {
  // Lengths keep "ab" + "c" and "a" + "bc" apart.
  std::string text;
  for (const std::string& part :
       {problem, problem_document, device, device_identity, conditions, to_string(provenance)}) {
    text += fmt::format("{}:", part.size()) + part;
  }
  return content_hash(text);
}

struct Store::State {
  State(const std::filesystem::path& file, bool read_only) : database(file, read_only) {}

  Database database;
  std::optional<Statement> insert_running, delete_running, insert_measurement;
  std::unique_ptr<Flusher> flusher;  // last: it ends before the connection does

  /// One measurement's row, and the end of its begin(); inside a transaction.
  void insert(std::int64_t session, const Configuration& configuration, const Measurement& measurement);

  void prepare_writing() {
    // NORMAL: a commit is in the kernel's hands, and the log reaches the disk before the database does; the
    // flusher brings it there at once.
    database.execute("PRAGMA journal_mode = WAL");
    database.execute("PRAGMA synchronous = NORMAL");
    database.execute("PRAGMA foreign_keys = ON");
    prepare_schema(database);
    flusher = std::make_unique<Flusher>(database.file().string() + "-wal");
  }
};

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Store Store::open(const std::filesystem::path& file, bool read_only) {
  check_header(file);
  std::error_code error;
  if (read_only && !std::filesystem::exists(file, error)) {
    throw UserError("there is no store here; \"ergotune tune\" makes one", {file.string(), 0, 0});
  }
  auto state = std::make_unique<State>(file, read_only);
  if (!read_only) state->prepare_writing();
  check_schema(state->database);
  if (!read_only) {
    state->insert_running.emplace(
        state->database, "INSERT OR REPLACE INTO running (session, configuration, since) VALUES (?, ?, ?)");
    state->delete_running.emplace(state->database,
                                  "DELETE FROM running WHERE session = ? AND configuration = ?");
    state->insert_measurement.emplace(
        state->database,
        "INSERT INTO measurements (session, configuration, status, message, quantities, metrics, "
        "metric_errors, "
        "warnings, times, compile_seconds, verify_seconds, measure_seconds, tuner_seconds, finished_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  }
  return Store(std::move(state));
}

std::int64_t Store::session(const SessionIdentity& identity, const std::vector<std::string>& parameter_names,
                            const std::string& objective, const std::string& environment_json,
                            const std::string& document) {
  const std::string hash = identity.hash();
  Transaction transaction(state_->database);
  Statement find(state_->database, "SELECT id FROM sessions WHERE identity_hash = ?");
  find.bind(1, hash);
  if (find.step()) return find.integer(0);
  Statement insert(
      state_->database,
      "INSERT INTO sessions (identity_hash, problem, device, device_identity, conditions, provenance, "
      "created_at, parameter_names, objective, environment, document) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(1, hash).bind(2, identity.problem).bind(3, identity.device).bind(4, identity.device_identity);
  insert.bind(5, identity.conditions).bind(6, to_string(identity.provenance)).bind(7, wall_seconds());
  insert.bind(8, dump(Json(parameter_names)))
      .bind(9, objective)
      .bind(10, environment_json)
      .bind(11, document);
  insert.run();
  const std::int64_t id = state_->database.last_row();
  transaction.commit();
  state_->flusher->wrote();
  return id;
}

std::vector<SessionInfo> Store::sessions() const {
  std::vector<SessionInfo> result;
  Statement rows(state_->database, std::string(kSessionColumns) + "ORDER BY id");
  while (rows.step()) result.push_back(session_row(rows));
  return result;
}

std::optional<SessionInfo> Store::session_info(std::int64_t id) const {
  Statement rows(state_->database, std::string(kSessionColumns) + "WHERE id = ?");
  rows.bind(1, id);
  if (!rows.step()) return std::nullopt;
  return session_row(rows);
}

std::string Store::environment(std::int64_t session) const {
  Statement rows(state_->database, "SELECT environment FROM sessions WHERE id = ?");
  rows.bind(1, session);
  return rows.step() ? rows.text(0) : std::string();
}

std::string Store::document(std::int64_t session) const {
  Statement rows(state_->database, "SELECT document FROM sessions WHERE id = ?");
  rows.bind(1, session);
  return rows.step() ? rows.text(0) : std::string();
}

void Store::begin(std::int64_t session, const Configuration& configuration) {
  state_->insert_running->bind(1, session).bind(2, configuration_text(configuration)).bind(3, wall_seconds());
  state_->insert_running->run();
  state_->flusher->wrote();
}

std::vector<Configuration> Store::unfinished(std::int64_t session) const {
  std::vector<Configuration> result;
  Statement rows(state_->database, "SELECT configuration FROM running WHERE session = ? ORDER BY since");
  rows.bind(1, session);
  while (rows.step()) result.push_back(configuration_from(rows.text(0)));
  return result;
}

void Store::withdraw(std::int64_t session, const Configuration& configuration) {
  state_->delete_running->bind(1, session).bind(2, configuration_text(configuration));
  state_->delete_running->run();
  state_->flusher->wrote();
}

void Store::State::insert(std::int64_t session, const Configuration& configuration,
                          const Measurement& measurement) {
  const std::string text = configuration_text(configuration);
  Json times = Json::array();
  for (const double time : measurement.times) times.push_back(number_json(time));
  Statement& row = *insert_measurement;
  row.bind(1, session).bind(2, text).bind(3, to_string(measurement.status)).bind(4, measurement.message);
  row.bind(5, quantities_text(measurement)).bind(6, numbers_text(measurement.metrics));
  row.bind(7, numbers_text(measurement.metric_errors)).bind(8, dump(Json(measurement.warnings)));
  row.bind(9, dump(times)).bind(10, measurement.compile_seconds).bind(11, measurement.verify_seconds);
  row.bind(12, measurement.measure_seconds)
      .bind(13, measurement.tuner_seconds)
      .bind(14, measurement.finished_at);
  row.run();
  delete_running->bind(1, session).bind(2, text);
  delete_running->run();
}

void Store::add(std::int64_t session, const Configuration& configuration, const Measurement& measurement) {
  Transaction transaction(state_->database);
  state_->insert(session, configuration, measurement);
  transaction.commit();
  state_->flusher->wrote();
}

void Store::add_all(std::int64_t session, const std::vector<StoredRow>& rows) {
  Transaction transaction(state_->database);
  for (const StoredRow& row : rows) state_->insert(session, row.configuration, row.measurement);
  transaction.commit();
  state_->flusher->wrote();
}

std::vector<StoredRow> Store::rows(std::int64_t session) const {
  std::vector<StoredRow> result;
  Statement rows(
      state_->database,
      "SELECT id, configuration, status, message, quantities, metrics, metric_errors, warnings, times, "
      "compile_seconds, verify_seconds, measure_seconds, tuner_seconds, finished_at FROM measurements "
      "WHERE session = ? ORDER BY id");
  rows.bind(1, session);
  while (rows.step()) {
    StoredRow row;
    row.id = rows.integer(0);
    row.configuration = configuration_from(rows.text(1));
    Measurement& m = row.measurement;
    m.status = status_from(rows.text(2)).value_or(Status::runtime_error);
    m.message = rows.text(3);
    quantities_from(rows.text(4), m);
    m.metrics = numbers_from(rows.text(5));
    m.metric_errors = numbers_from(rows.text(6));
    m.warnings = Json::parse(rows.text(7)).get<std::vector<std::string>>();
    for (const Json& time : Json::parse(rows.text(8))) m.times.push_back(number_from(time));
    m.compile_seconds = rows.real(9);
    m.verify_seconds = rows.real(10);
    m.measure_seconds = rows.real(11);
    m.tuner_seconds = rows.real(12);
    m.finished_at = rows.real(13);
    result.push_back(std::move(row));
  }
  return result;
}

namespace {

int standing(Status status) { return status == Status::ok ? 2 : usable(status) ? 1 : 0; }

}  // namespace

std::vector<StoredRow> Store::results(std::int64_t session) const {
  std::map<Configuration, std::size_t> seen;
  std::vector<StoredRow> result;
  for (StoredRow& row : rows(session)) {
    const auto [found, added] = seen.emplace(row.configuration, result.size());
    if (added) {
      result.push_back(std::move(row));
      continue;
    }
    StoredRow& known = result[found->second];
    const int before = standing(known.measurement.status), now = standing(row.measurement.status);
    if (now > before || before == 0) known = std::move(row);
  }
  return result;
}

void Store::flush() {
  if (state_->flusher) state_->flusher->wait();
}

std::string Store::integrity() const {
  Statement check(state_->database, "PRAGMA integrity_check");
  return check.step() ? check.text(0) : "no answer";
}

const std::filesystem::path& Store::file() const { return state_->database.file(); }

}  // namespace ergotune
