// A recording of another tool as a session of a store.
#pragma once

#include <cstdint>

#include "store/formats/recording.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune {

struct ImportedSession {
  std::int64_t session = 0;
  std::size_t added = 0;  ///< rows whose configuration the session did not have
};

/// The same file again adds what it has gained since, as a live cache does.
ImportedSession import_recording(Store& store, const Recording& recording);

}  // namespace ergotune
