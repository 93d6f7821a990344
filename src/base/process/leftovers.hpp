// What processes that were killed left behind, under names of ours.
#pragma once

#include <chrono>
#include <filesystem>
#include <string_view>
#include <vector>

namespace ergotune {

/// Files and folders of `folder` whose names begin with `prefix` and that were not written to for `age`. None where the
/// folder cannot be read.
std::vector<std::filesystem::path> left_behind(const std::filesystem::path& folder, std::string_view prefix,
                                               std::chrono::hours age);

}  // namespace ergotune
