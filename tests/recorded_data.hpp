// Recorded data of other projects; tests/data/recorded/README.md names the sources.
#pragma once

#include <filesystem>

namespace ergotune::test {

inline std::filesystem::path recorded_data() { return std::filesystem::path(ERGOTUNE_TEST_DATA) / "recorded"; }

}  // namespace ergotune::test
