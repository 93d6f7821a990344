// Imports a recording of another tool as a session of a store.
#pragma once

#include <cstdint>

#include "store/formats/recording.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune {

struct ImportedSession {
  std::int64_t session = 0;
  std::size_t added = 0;  ///< rows whose configuration was new to the session
};

/// Importing the same file again adds its new rows, as for a cache file that another tool extends.
ImportedSession import_recording(Store& store, const Recording& recording);

}  // namespace ergotune
