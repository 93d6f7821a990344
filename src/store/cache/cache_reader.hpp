// Kernel Tuner cache files: {..., "tune_params": {..}, "cache": {"16,1": {..}, ...}}. Read in blocks by as
// many threads as pay, never as a whole, when every entry stands on a line of its own (as Kernel Tuner writes
// them).
#pragma once

#include <filesystem>

#include "store/formats/recording.hpp"

namespace ergotune {

/// Reads a cache, cut off or not. Restrictions are not looked for here. Throws UserError.
Recording read_cache(const std::filesystem::path& file);

}  // namespace ergotune
