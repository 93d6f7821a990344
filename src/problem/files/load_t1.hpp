// T1, the auto-tuning community's JSON form of a problem (https://github.com/odgaard/TuningSchema).
#pragma once

#include <filesystem>

#include "ergotune/problem_file.hpp"
#include "problem/document/table.hpp"

namespace ergotune {

/// Reads a problem from T1. If the kernel file does not exist, its source has no text: T1 files are distributed with
/// recorded results, for which only the search space matters.
ProblemFile read_t1(const document::Table& root, const std::filesystem::path& file);

}  // namespace ergotune
