// Finds the files that a source includes, since compiled code and results depend on their contents.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ergotune {

struct KernelSource;

/// Returns the folders searched for a source's includes: the source's folder, then the others; absolute, without
/// duplicates.
std::vector<std::filesystem::path> include_folders_of(const KernelSource& source);

struct IncludedFile {
  std::string name;  ///< as written in the source
  std::string text;
  std::filesystem::path path;  ///< path at which it was found
};
/// Returns the files that `source` includes, found in `folders`, recursively and without duplicates, in the order of
/// the #include directives. System headers are left out: the compiler's version identifies them.
std::vector<IncludedFile> included_files(const std::string& source, const std::vector<std::string>& folders);

/// Returns the names in double quotes that `source` and what it includes name, and that are not found.
std::vector<std::string> missing_includes(const std::string& source, const std::vector<std::string>& folders);

/// Returns included_files() in these folders, in those that compiler options name (-I, -isystem, -iquote, -idirafter)
/// and in those of CPATH, C_INCLUDE_PATH and CPLUS_INCLUDE_PATH; headers that a macro names; the files that options
/// name themselves (objects, -include) with what they include; and the libraries of -l in the folders of -L and
/// LIBRARY_PATH. Macros are those of options and sources; ones that expand to others are not followed.
std::vector<IncludedFile> files_in_use(const std::string& source, std::vector<std::string> folders,
                                       const std::vector<std::string>& options);

/// Returns a hash of the names and contents of files_in_use(); empty if there are none.
std::string hash_of_includes(const std::string& source, std::vector<std::string> folders,
                             const std::vector<std::string>& options);

}  // namespace ergotune
