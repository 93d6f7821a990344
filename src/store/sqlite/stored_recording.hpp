// A stored session as a recording.
#pragma once

#include <cstdint>
#include <filesystem>

#include "store/formats/recording.hpp"

namespace ergotune {

/// `session` 0 means the latest. Of a configuration measured several times the first usable row counts.
Recording read_stored_session(const std::filesystem::path& file, std::int64_t session);

}  // namespace ergotune
