#include "problem/files/includes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/kernel_source/outline.hpp"
#include "base/text.hpp"
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

/// Files that a source includes, as the compiler finds them: beside the file that names one, then in the folders.
class Includes {
 public:
  explicit Includes(const std::vector<std::string>& folders) : folders_(folders) {}

  void collect(const std::string& source, const std::string& beside) {
    for (const std::string& name : included_names(source)) {
      const std::string* file = beside.empty() ? nullptr : found(beside + '/' + name);
      for (auto folder = folders_.begin(); !file && folder != folders_.end(); ++folder)
        file = found(*folder + '/' + name);
      if (!file || !seen_.insert(*file).second) continue;
      if (auto text = read_file(*file)) {
        files.push_back({name, *text, *file});
        collect(*text, std::filesystem::path(*file).parent_path().string());
      }
    }
  }
  std::vector<IncludedFile> files;

 private:
  /// The file behind a path, or nullptr. Libraries name the same headers thousands of times.
  const std::string* found(const std::string& path) {
    auto& file = known_.try_emplace(path).first->second;
    if (!file) {
      std::error_code failed;
      file.emplace();
      if (std::filesystem::is_regular_file(path, failed)) *file = std::filesystem::canonical(path, failed).string();
    }
    return file->empty() ? nullptr : &*file;
  }

  const std::vector<std::string>& folders_;
  std::unordered_map<std::string, std::optional<std::string>> known_;  ///< by path; empty: there is no such file
  std::set<std::string> seen_;
};

}  // namespace

std::vector<std::filesystem::path> include_folders_of(const KernelSource& source) {
  std::vector<std::filesystem::path> folders;
  const auto add = [&](const std::filesystem::path& folder) {
    auto whole = std::filesystem::absolute(folder.empty() ? "." : folder).lexically_normal();
    if (!whole.has_filename()) whole = whole.parent_path();  // "/a/b/" becomes "/a/b"
    if (std::ranges::find(folders, whole) == folders.end()) folders.push_back(whole);
  };
  if (!source.file.empty()) add(source.file.parent_path());
  for (const auto& folder : source.include_folders) add(folder);
  return folders;
}

std::vector<IncludedFile> included_files(const std::string& source, const std::vector<std::string>& folders) {
  return files_in_use(source, folders, {});
}

std::vector<std::string> missing_includes(const std::string& source, const std::vector<std::string>& folders) {
  std::vector<IncludedFile> files = included_files(source, folders);
  std::set<std::string> missing, found;
  for (const IncludedFile& file : files) found.insert(file.name);
  files.push_back({"", source, ""});
  for (const IncludedFile& file : files) {
    const std::string text = kernel_source::blank_comments(file.text);  // quotes remain, at their positions
    for (std::size_t at = 0; (at = text.find("#include \"", at)) != std::string::npos; ++at) {
      const std::size_t begin = at + 10, end = text.find('"', begin);
      const std::string name = file.text.substr(begin, end - begin);
      if (end != std::string::npos && !found.contains(name)) missing.insert(name);
    }
  }
  return {missing.begin(), missing.end()};
}

std::vector<IncludedFile> files_in_use(const std::string& source, std::vector<std::string> folders,
                                       const std::vector<std::string>& options) {
  std::vector<std::string> parts;
  for (const std::string& option : options)
    for (std::string& part : split(option, ' '))
      if (!part.empty()) parts.push_back(std::move(part));
  std::vector<std::string> named;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto has = [&](std::string_view flag) { return parts[i].starts_with(flag); };
    const char* const flags[] = {"-isystem", "-iquote", "-idirafter", "-I"};
    const auto* const flag = std::ranges::find_if(flags, has);
    std::error_code failed;
    if (flag == std::end(flags)) {
      if (std::filesystem::is_regular_file(parts[i], failed)) named.push_back(parts[i]);
    } else if (parts[i] != *flag) {
      folders.push_back(parts[i].substr(std::strlen(*flag)));
    } else if (i + 1 < parts.size()) {
      folders.push_back(parts[++i]);
    }
  }
  Includes includes(folders);
  includes.collect(source, "");
  for (const std::string& file : named) {
    includes.files.push_back({file, read_file(file).value_or(""), file});
    includes.collect(std::string(includes.files.back().text), std::filesystem::path(file).parent_path().string());
  }
  return std::move(includes.files);
}

std::string hash_of_includes(const std::string& source, std::vector<std::string> folders,
                             const std::vector<std::string>& options) {
  std::string contents;
  for (const auto& [name, text, path] : files_in_use(source, std::move(folders), options))
    contents += fmt::format("{}:{}{}:{}", name.size(), name, text.size(), text);
  return contents.empty() ? std::string() : content_hash(contents);
}

}  // namespace ergotune
