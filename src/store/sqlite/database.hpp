// Owners of an SQLite connection and its statements, whose errors include the file and SQLite's message; the store's
// tables and their version.
#pragma once

#include <sqlite3.h>

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace ergotune {

class Database;

/// A prepared statement. Columns are counted from 0.
class Statement {
 public:
  Statement(const Database& database, const std::string& sql);
  template <class... Value>
  Statement(const Database& database, const std::string& sql, const Value&... values) : Statement(database, sql) {
    with(values...);
  }
  /// Binds values to its parameters, in order.
  template <class... Value>
  Statement& with(const Value&... values) {
    int position = 0;
    (bind(++position, values), ...);
    return *this;
  }
  /// Advances to the next row; false if there is none.
  bool step();
  /// Executes a statement that returns no rows, and resets it.
  void run();
  void reset();

  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  bool is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }

 private:
  void bind(int position, std::int64_t value);
  void bind(int position, double value);
  void bind(int position, std::string_view value);

  struct Finalise {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  const Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalise> statement_;
};

class Database {
 public:
  /// Opens or creates a database. Throws UserError if the file cannot be opened.
  Database(const std::filesystem::path& file, bool read_only);
  void execute(const std::string& sql) const;
  std::int64_t last_row() const { return sqlite3_last_insert_rowid(handle_.get()); }
  sqlite3* handle() const { return handle_.get(); }
  const std::filesystem::path& file() const { return file_; }
  /// False if the file was removed, renamed or replaced since it was opened.
  bool is_there() const;
  /// Called before each write. If another file has taken the name, the write-ahead log beside it would be applied to
  /// that file when it is next opened: calls settle(), then throws Error.
  void require_in_place() const;
  /// Checkpoints: writes all changes to the file that was opened, wherever it is now, and empties the log.
  void settle() const;
  /// Throws for a result code: UserError if the user can correct the cause (file damaged, read-only, disk full), Error
  /// otherwise. `doing`: the failed action, for the message.
  [[noreturn]] void fail(int code, const std::string& doing) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  std::filesystem::path file_;
  std::unique_ptr<sqlite3, Close> handle_;
};

/// A transaction that rolls back unless committed.
class Transaction {
 public:
  explicit Transaction(const Database& database) : database_(database) {
    database_.require_in_place();
    database_.execute("BEGIN IMMEDIATE");
  }
  ~Transaction();
  void commit();

 private:
  const Database& database_;
  bool done_ = false;
};

/// Throws UserError if the file cannot be a store: a folder, or not an SQLite database.
void check_store_header(const std::filesystem::path& file);
/// Creates the tables of a new store. Throws UserError if the database belongs to another program.
void prepare_schema(const Database& database);
/// Throws UserError if the store has another version or belongs to another program, and if it contains views, triggers
/// or computed columns.
void check_schema(const Database& database);

/// Flushes the write-ahead log to the disk on a separate thread. A row that SQLite has committed survives the death of
/// this process, since the kernel holds it; only a crash of the machine requires the disk. Waiting for the disk after
/// every row (5 ms on a virtual machine) would take longer than measuring a small kernel.
class Flusher {
 public:
  explicit Flusher(std::filesystem::path log);
  ~Flusher();
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;
  /// Reports a write. It is flushed within a tenth of a second; the caller does not wait.
  void wrote();
  /// Returns when all reported writes are on the disk.
  void wait();

 private:
  void run();
  std::filesystem::path log_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t written_ = 0, flushed_ = 0, awaited_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace ergotune
