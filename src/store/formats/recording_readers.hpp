// The readers behind load_recording(), one per format. Each throws UserError with the place of the fault.
#pragma once

#include <cstdint>
#include <filesystem>

#include "store/formats/recording.hpp"

namespace ergotune {

/// A Kernel Tuner cache, {..., "tune_params": {..}, "cache": {"16,1": {..}, ...}}, cut off or not. Read in blocks by as
/// many threads as pay, never as a whole, when every entry stands on a line of its own (as Kernel Tuner writes them).
/// Restrictions are not looked for here.
Recording read_cache(const std::filesystem::path& file);
/// T4, the auto-tuning community's JSON form of results.
Recording read_t4(const std::filesystem::path& file);
/// Comma-separated values in SI units. Columns before "status" are parameters; without one, those before the first
/// known quantity ("time", "energy" ...). "X_standard_error", "X_n" and "X_degrees" (else X_n - 1) belong to X.
Recording read_csv(const std::filesystem::path& file);
/// A session of a store; `session` 0 means the latest. Of a configuration measured several times the first usable row
/// counts.
Recording read_stored_session(const std::filesystem::path& file, std::int64_t session);

}  // namespace ergotune
