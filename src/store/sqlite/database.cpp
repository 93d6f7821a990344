#include "store/sqlite/database.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "ergotune/error.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune {
namespace {

// Two sessions may share a store: a session waits for the other's write, which takes much less than this.
constexpr int kBusyTimeoutMilliseconds = 20'000;

sqlite3* open_handle(const std::string& name, int flags, int& code) {
  sqlite3* handle = nullptr;
  code = sqlite3_open_v2(name.c_str(), &handle, flags | SQLITE_OPEN_URI, nullptr);
  return handle;
}

/// Escapes characters that have a meaning in a URI.
std::string uri_path(const std::filesystem::path& file) {
  std::string result;
  for (const char c : std::filesystem::absolute(file).string()) {
    if (c == '?' || c == '#' || c == '%') {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result;
}

bool may_write(const std::filesystem::path& file) {
  const auto folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  // checked for the effective user, as SQLite accesses the file
  const auto writable = [](const char* path) { return ::faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0; };
  return writable(file.c_str()) && writable(folder.c_str());
}

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

constexpr std::chrono::milliseconds kBetweenFlushes{100};

/// Opens the log each time, since SQLite may have created a new file of that name.
void flush_file(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;  // checkpointed and removed: its content is in the database, which SQLite has flushed
  ::fdatasync(descriptor);
  ::close(descriptor);
}

}  // namespace

Database::Database(const std::filesystem::path& file, bool read_only) : file_(file) {
  int code = SQLITE_OK;
  const std::string path = uri_path(file);
  if (!read_only) {
    handle_.reset(open_handle("file:" + path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, code));
  } else if (may_write(file)) {
    // A reader with write access removes the write-ahead log when it is the last to close; a read-only one would leave
    // its files behind.
    handle_.reset(open_handle("file:" + path, SQLITE_OPEN_READWRITE, code));
    if (code == SQLITE_OK) sqlite3_exec(handle_.get(), "PRAGMA query_only = ON", nullptr, nullptr, nullptr);
  } else {
    handle_.reset(open_handle("file:" + path + "?mode=ro", SQLITE_OPEN_READONLY, code));
    // A write-ahead log requires a writable folder even for reading; without one the file is read without its log.
    const char* look = "SELECT count(*) FROM sqlite_master";
    const int seen = code == SQLITE_OK ? sqlite3_exec(handle_.get(), look, nullptr, nullptr, nullptr) : SQLITE_OK;
    if (seen == SQLITE_CANTOPEN || seen == SQLITE_READONLY)  // the log or its index cannot be created
      handle_.reset(open_handle("file:" + path + "?immutable=1", SQLITE_OPEN_READONLY, code));
  }
  if (code != SQLITE_OK) fail(code, "open");
  sqlite3_busy_timeout(handle_.get(), kBusyTimeoutMilliseconds);
  sqlite3_extended_result_codes(handle_.get(), 1);
}

void Database::fail(int code, const std::string& doing) const {
  const std::string message = handle_ ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code);
  const SourcePlace place{file_.string(), 0, 0};
  switch (code & 0xff) {
    case SQLITE_CANTOPEN:
      if (constexpr std::size_t kMaxPath = 512; std::filesystem::absolute(file_).native().size() >= kMaxPath)
        throw UserError(fmt::format("cannot open the store: its path has {} characters, and SQLite takes fewer than {}",
                                    std::filesystem::absolute(file_).native().size(), kMaxPath),
                        place);
      throw UserError(
          fmt::format("cannot open the store ({}): does its folder exist, and may you write there?", message), place);
    case SQLITE_READONLY:
    case SQLITE_PERM:
      throw UserError(
          fmt::format("the store cannot be written ({}): change its permissions or name another with --store", message),
          place);
    case SQLITE_NOTADB:
      throw UserError("this is not an ergotune store", place);
    case SQLITE_CORRUPT:
      throw UserError(
          fmt::format(
              "the store is damaged ({}); \"sqlite3 FILE .recover\" may save its rows, or begin a new one with --store",
              message),
          place);
    case SQLITE_FULL:
    case SQLITE_IOERR:
      throw UserError(
          fmt::format("the store cannot be written ({}): is the disk full, or the size of files limited (ulimit -f)?",
                      message),
          place);
    case SQLITE_BUSY:
      throw UserError("the store is locked by another process; wait for it, or name another store with --store", place);
    default:
      throw Error(fmt::format("{}: cannot {} the store: {}", file_.string(), doing, message));
  }
}

bool Database::is_there() const {
  int moved = 0;
  return sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || moved == 0;
}

void Database::settle() const {
  sqlite3_wal_checkpoint_v2(handle_.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
}

void Database::require_in_place() const {
  std::error_code error;
  if (is_there() || !std::filesystem::exists(file_, error)) return;
  settle();
  throw Error(
      fmt::format("{}: another file has taken the place of the store while this session wrote it; the session ends, "
                  "and the new file is left as it is",
                  file_.string()));
}

void Database::execute(const std::string& sql) const {
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code, "use");
}

Statement::Statement(const Database& database, const std::string& sql) : database_(&database) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(database.handle(), sql.c_str(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) database.fail(code, "use");
  statement_.reset(statement);
}

void Statement::bind(int position, std::int64_t value) { sqlite3_bind_int64(statement_.get(), position, value); }
void Statement::bind(int position, double value) { sqlite3_bind_double(statement_.get(), position, value); }
void Statement::bind(int position, std::string_view value) {
  sqlite3_bind_text64(statement_.get(), position, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  sqlite3_reset(statement_.get());
  database_->fail(code, "use");
}

void Statement::run() {
  while (step()) {
  }
  reset();
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }
std::string Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return data ? std::string(data, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column)))
              : std::string();
}

Transaction::~Transaction() {
  // Not execute(): a destructor must not throw, and a failed commit has rolled back already.
  if (!done_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.execute("COMMIT");
  done_ = true;
}

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
  Statement foreign(database,
                    "SELECT name FROM sqlite_master WHERE type IN ('view', 'trigger') OR sql LIKE 'CREATE VIRTUAL%' "
                    "UNION ALL SELECT m.name || '.' || c.name FROM sqlite_master m, pragma_table_xinfo(m.name) c WHERE "
                    "m.type = 'table' AND c.hidden > 0");
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

Flusher::Flusher(std::filesystem::path log) : log_(std::move(log)), thread_([this] { run(); }) {}

Flusher::~Flusher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Flusher::wrote() {
  {
    const std::lock_guard lock(mutex_);
    ++written_;
  }
  changed_.notify_all();
}

void Flusher::wait() {
  std::unique_lock lock(mutex_);
  const std::uint64_t until = awaited_ = written_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return flushed_ >= until; });
}

void Flusher::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || flushed_ < written_; });
    if (flushed_ == written_) return;  // stopped, and nothing left to flush
    const std::uint64_t now = written_;
    lock.unlock();
    flush_file(log_);
    lock.lock();
    flushed_ = now;
    changed_.notify_all();
    // A commit during a flush waits for it: all commits within a short time share one flush.
    changed_.wait_for(lock, kBetweenFlushes, [&] { return stop_ || awaited_ > flushed_; });
  }
}

}  // namespace ergotune
