// What source text includes: compiled code and results depend on those files' contents.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"

namespace ergotune {

/// Where a source's includes are looked for: its own folder, then the others; absolute, none twice.
std::vector<std::filesystem::path> include_folders_of(const KernelSource& source);

struct IncludedFile {
  std::string name;  ///< as the source writes it
  std::string text;
  std::filesystem::path path;  ///< where it was found
};
/// The files that `source` includes, found beside it or in `folders`, recursively, each once, in the order
/// they are met. System headers are not followed: the compiler's identity stands for them.
std::vector<IncludedFile> included_files(const std::string& source, const std::vector<std::string>& folders);

/// A hash over included_files(), names and contents; empty when there are none.
std::string hash_of_includes(const std::string& source, const std::vector<std::string>& folders);

}  // namespace ergotune
