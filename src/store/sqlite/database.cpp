#include "store/sqlite/database.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "ergotune/error.hpp"

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
          fmt::format("the store is damaged ({}); \"sqlite3 FILE .recover\" may save its rows, or begin a new "
                      "one with --store",
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
  throw Error(fmt::format(
      "{}: another file has taken the place of the store while this session wrote it; the session ends, and the new "
      "file is left as it is",
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

Statement& Statement::bind(int position, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), position, value);
  return *this;
}
Statement& Statement::bind(int position, double value) {
  sqlite3_bind_double(statement_.get(), position, value);
  return *this;
}
Statement& Statement::bind(int position, std::string_view value) {
  sqlite3_bind_text64(statement_.get(), position, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
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

}  // namespace ergotune
