// T4, the auto-tuning community's JSON form of results.
#pragma once

#include <filesystem>

#include "store/formats/recording.hpp"

namespace ergotune {

/// Throws UserError.
Recording read_t4(const std::filesystem::path& file);

}  // namespace ergotune
