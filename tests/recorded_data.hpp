// Recorded data that is too large for the repository: in $ERGOTUNE_SHARED_DATA, or in shared/data beside the
// checkout.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace ergotune::test {

/// The folder of recorded data; empty where it is not.
inline std::filesystem::path recorded_data() {
  const char* named = std::getenv("ERGOTUNE_SHARED_DATA");
  const std::filesystem::path folder =
      named && *named ? named : std::filesystem::path(ERGOTUNE_SOURCE_DIR) / ".." / "shared" / "data";
  return std::filesystem::is_directory(folder) ? folder : std::filesystem::path();
}

}  // namespace ergotune::test

/// The first line of a test that needs it.
#define SKIP_WITHOUT_RECORDED_DATA()              \
  if (ergotune::test::recorded_data().empty())    \
  GTEST_SKIP() << "the recorded data is not here" \
               << " (ERGOTUNE_SHARED_DATA, or shared/data beside the checkout)"
