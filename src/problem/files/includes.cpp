#include "problem/files/includes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/files.hpp"
#include "base/hash.hpp"
#include "ergotune/argument.hpp"

namespace ergotune {
namespace {

/// Returns the names in `#include "x"`, `#include <x>` and Fortran's `include 'x'`.
std::vector<std::string> included_names(const std::string& source) {
  std::vector<std::string> names;
  for (std::size_t at = source.find("include"); at != std::string::npos; at = source.find("include", at + 1)) {
    std::size_t i = at + 7;
    while (i < source.size() && (source[i] == ' ' || source[i] == '\t')) ++i;
    if (i >= source.size()) break;
    const char open = source[i];
    if (open != '"' && open != '<' && open != '\'') continue;
    const std::size_t end = source.find(open == '<' ? '>' : open, i + 1);
    if (end == std::string::npos || source.substr(i, end - i).find('\n') != std::string::npos) continue;
    names.push_back(source.substr(i + 1, end - i - 1));
  }
  return names;
}

void collect_includes(const std::string& source, const std::vector<std::string>& folders,
                      std::set<std::filesystem::path>& seen, std::vector<IncludedFile>& files) {
  for (const std::string& name : included_names(source)) {
    for (const std::string& folder : folders) {
      std::error_code failed;
      const auto file = std::filesystem::weakly_canonical(std::filesystem::path(folder) / name, failed);
      if (failed || !std::filesystem::is_regular_file(file, failed)) continue;
      if (seen.insert(file).second) {
        if (auto text = read_file(file)) {
          files.push_back({name, *text, file});
          std::vector<std::string> deeper{file.parent_path().string()};
          deeper.insert(deeper.end(), folders.begin(), folders.end());
          collect_includes(*text, deeper, seen, files);
        }
      }
      break;
    }
  }
}

}  // namespace

std::vector<std::filesystem::path> include_folders_of(const KernelSource& source) {
  std::vector<std::filesystem::path> folders;
  const auto add = [&](const std::filesystem::path& folder) {
    auto whole = std::filesystem::absolute(folder.empty() ? "." : folder).lexically_normal();
    if (!whole.has_filename()) whole = whole.parent_path();  // "/a/b/" becomes "/a/b"
    if (std::find(folders.begin(), folders.end(), whole) == folders.end()) folders.push_back(whole);
  };
  if (!source.file.empty()) add(source.file.parent_path());
  for (const auto& folder : source.include_folders) add(folder);
  return folders;
}

std::vector<IncludedFile> included_files(const std::string& source, const std::vector<std::string>& folders) {
  std::set<std::filesystem::path> seen;
  std::vector<IncludedFile> files;
  collect_includes(source, folders, seen, files);
  return files;
}

std::string hash_of_includes(const std::string& source, const std::vector<std::string>& folders) {
  std::string contents;
  for (const auto& [name, text, path] : included_files(source, folders))
    contents += fmt::format("{}:{}{}:{}", name.size(), name, text.size(), text);
  return contents.empty() ? std::string() : content_hash(contents);
}

}  // namespace ergotune
