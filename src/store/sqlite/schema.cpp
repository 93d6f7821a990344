#include "store/sqlite/schema.hpp"

#include <fmt/format.h>

#include <fstream>

#include "ergotune/error.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune {
namespace {

constexpr std::int64_t kApplicationId = 0x4552474f;  // "ERGO"
constexpr std::int64_t kSchemaVersion = 5;

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
  quantities TEXT NOT NULL,         -- JSON {name: {value, standard_error, n, method, provenance, sensor, degrees}}, SI units
  metrics TEXT NOT NULL,            -- JSON {name: value}
  metric_errors TEXT NOT NULL,      -- JSON {name: standard error or [standard error, degrees of freedom]}
  warnings TEXT NOT NULL,           -- JSON list
  times TEXT NOT NULL,              -- JSON list, s
  compile_seconds REAL NOT NULL, verify_seconds REAL NOT NULL,
  measure_seconds REAL NOT NULL, tuner_seconds REAL NOT NULL,
  finished_at REAL NOT NULL,        -- s since the epoch
  kind TEXT NOT NULL DEFAULT 'search',  -- or 'confirmation' (a round), 'confirmed' (their mean)
  run INTEGER NOT NULL DEFAULT 0,       -- runs.id; 0: before runs were kept
  stage TEXT NOT NULL DEFAULT '',       -- of a plan: "plan/stage"
  board TEXT NOT NULL DEFAULT ''        -- which device of several; empty: the session's
);
CREATE INDEX measurements_by_session ON measurements(session, id);
-- What is running right now, so that a crash of everything is known by its culprit.
CREATE TABLE running (
  session INTEGER NOT NULL REFERENCES sessions(id),
  configuration TEXT NOT NULL,
  since REAL NOT NULL,
  under_way INTEGER NOT NULL DEFAULT 1, -- 0: the session died while it ran, and it has not begun again
  deaths INTEGER NOT NULL DEFAULT 0,    -- how many times a session died while it ran
  PRIMARY KEY (session, configuration)
) WITHOUT ROWID;
)sql";

constexpr const char* kRuns = R"sql(
-- One invocation that worked on a session.
CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL REFERENCES sessions(id),
  started_at REAL NOT NULL,         -- s since the epoch
  ended_at REAL NOT NULL DEFAULT 0, -- 0: goes on, or died
  objective TEXT NOT NULL,
  direction TEXT NOT NULL,          -- 'min', 'max', or empty where the objective's text says it
  strategy TEXT NOT NULL,
  plan TEXT NOT NULL,
  seed TEXT NOT NULL,               -- unsigned, 64 bits
  phase TEXT NOT NULL,
  ended TEXT NOT NULL DEFAULT '',   -- why it stopped
  confirmed INTEGER NOT NULL DEFAULT 0, -- rounds of a finished confirmation
  probability_best REAL, expected_loss REAL -- of its winner; NULL: not known
);
CREATE INDEX runs_by_session ON runs(session, id);
)sql";

std::int64_t pragma(const Database& database, const std::string& name) {
  Statement statement(database, "PRAGMA " + name);
  return statement.step() ? statement.integer(0) : 0;
}

bool has_tables(const Database& database) {
  Statement tables(database, "SELECT count(*) FROM sqlite_master");
  return tables.step() && tables.integer(0) > 0;
}

}  // namespace

void check_store_header(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw UserError("this is a folder, not a store", {file.string(), 0, 0});
  if (const auto status = std::filesystem::status(file, error);
      std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw UserError("this is not a regular file (a pipe or a device) and cannot be a store", {file.string(), 0, 0});
  char header[16] = {};
  std::ifstream stream(file, std::ios::binary);
  stream.read(header, sizeof header);
  if (stream.gcount() > 0 && std::string_view(header, static_cast<std::size_t>(stream.gcount())) !=
                                 std::string_view("SQLite format 3\0", 16)) {
    throw UserError("this is not an ergotune store; name another file with --store", {file.string(), 0, 0});
  }
}

bool is_created(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return false;
  check_store_header(file);
  return has_tables(Database(file, true));
}

void prepare_schema(const Database& database) {
  Transaction transaction(database);
  const std::int64_t application = pragma(database, "application_id");
  const std::int64_t version = pragma(database, "user_version");
  const SourcePlace place{database.file().string(), 0, 0};
  if (application == 0 && version == 0) {
    if (has_tables(database))
      throw UserError("this is an SQLite database of another program; name another file with --store", place);
    database.execute(kSchema);
    database.execute(kRuns);
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
    throw UserError(has_tables(database) ? "this is an SQLite database of another program"
                                         : "this store is empty: the session that creates it has not begun yet",
                    place);
  }
  // ergotune creates none of these; they would execute code from an untrusted file.
  Statement foreign(
      database,
      "SELECT name FROM sqlite_master WHERE type IN ('view', 'trigger') OR sql LIKE 'CREATE VIRTUAL%' UNION ALL "
      "SELECT m.name || '.' || c.name FROM sqlite_master m, pragma_table_xinfo(m.name) c WHERE m.type = 'table' AND "
      "c.hidden > 0");
  if (foreign.step())
    throw UserError(
        fmt::format("this store has been changed: \"{}\" is a view, a trigger, or computed, and is not read",
                    foreign.text(0)),
        place);
  if (const std::int64_t version = pragma(database, "user_version"); version != kSchemaVersion)
    throw UserError(
        fmt::format("this store has schema {}, and this ergotune reads schema {}: {}", version, kSchemaVersion,
                    version > kSchemaVersion ? "use a newer ergotune"
                                             : "it is of an unreleased version; begin a new store with --store"),
        place);
}

}  // namespace ergotune
