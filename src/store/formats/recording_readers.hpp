// The readers used by load_recording(), one per format. Each throws UserError with the place of the error.
#pragma once

#include <cstdint>
#include <filesystem>

#include "store/formats/recording.hpp"

namespace ergotune {

/// A Kernel Tuner cache, {..., "tune_params": {..}, "cache": {"16,1": {..}, ...}}, which may be cut off. If every entry
/// is on its own line (as Kernel Tuner writes them), it is read in blocks by several threads and never held as a whole.
/// Restrictions are not read.
Recording read_cache(const std::filesystem::path& file);
/// T4, the JSON format for results of the auto-tuning community.
Recording read_t4(const std::filesystem::path& file);
/// Comma-separated values in SI units. Columns before "status" are parameters; without "status", those before the first
/// known quantity ("time", "energy" ...). "X_standard_error", "X_n" and "X_degrees" (default: X_n - 1) belong to X.
Recording read_csv(const std::filesystem::path& file);
/// A session of a store; `session` 0: the latest. For a configuration that was measured several times, the first usable
/// row counts.
Recording read_stored_session(const std::filesystem::path& file, std::int64_t session);

}  // namespace ergotune
