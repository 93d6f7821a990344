// What a store holds: its connection, the statements that are run for every result, and who brings them to the disk.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "store/sqlite/database.hpp"
#include "store/sqlite/flusher.hpp"
#include "store/sqlite/schema.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune {

struct Store::State {
  State(const std::filesystem::path& file, bool read_only) : database(file, read_only) {}
  ~State();

  bool is_there() const;

  Database database;
  /// What could not be read and is left out, by table and row.
  std::map<std::pair<std::string, std::int64_t>, std::string> damaged;
  std::optional<Statement> insert_running, delete_running, insert_measurement;
  std::unique_ptr<Flusher> flusher;  // last: it ends before the connection does

  /// One measurement's row, and the end of its begin(); inside a transaction.
  void insert(std::int64_t session, const StoredRow& row);
  void change(Statement& bound);
  std::string text_of_session(const char* query, std::int64_t session) const;

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

}  // namespace ergotune
