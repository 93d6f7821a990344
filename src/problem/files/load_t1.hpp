// T1, the auto-tuning community's JSON form of a problem (https://github.com/odgaard/TuningSchema).
#pragma once

#include <filesystem>

#include "ergotune/problem_file.hpp"
#include "problem/document/table.hpp"

namespace ergotune {

/// What T1 says of a problem. A kernel file that is not there leaves a source without text: T1 files are
/// passed around beside recorded results, where only the space matters.
ProblemFile read_t1(const document::Table& root, const std::filesystem::path& file);

}  // namespace ergotune
