// Tables of the results database and their version.
#pragma once

#include <cstdint>
#include <filesystem>

#include "store/sqlite/database.hpp"

namespace ergotune {

/// Throws UserError when the file cannot be a store: a folder, or no SQLite database.
void check_store_header(const std::filesystem::path& file);
/// Makes the tables of a new store. Throws UserError when the database is another program's.
void prepare_schema(const Database& database);
/// Throws UserError for a store of another version or program, and for one with views, triggers or computed columns.
void check_schema(const Database& database);

}  // namespace ergotune
