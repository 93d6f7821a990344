// Tables of the store's database, and their version.
#pragma once

#include <cstdint>
#include <filesystem>

#include "store/sqlite/database.hpp"

namespace ergotune {

/// Throws UserError if the file cannot be a store: a folder, or not an SQLite database.
void check_store_header(const std::filesystem::path& file);
/// Creates the tables of a new store. Throws UserError if the database belongs to another program.
void prepare_schema(const Database& database);
/// Throws UserError if the store has another version or belongs to another program, and if it contains views, triggers
/// or computed columns.
void check_schema(const Database& database);

}  // namespace ergotune
