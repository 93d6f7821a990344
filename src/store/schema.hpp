// Tables of the results database, their version, and how an older one is brought up to date.
#pragma once

#include <cstdint>
#include <filesystem>

#include "store/database.hpp"

namespace ergotune {

/// Throws UserError when the file cannot be a store: a folder, or no SQLite database.
void check_store_header(const std::filesystem::path& file);
/// Makes the tables of a new store; migrates those of an older one. Throws UserError when they are another program's.
void prepare_schema(const Database& database);
/// The version of the tables (1: before runs were kept). Throws UserError when they are another program's or newer.
std::int64_t schema_version(const Database& database);

}  // namespace ergotune
