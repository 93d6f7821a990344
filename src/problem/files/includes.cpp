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
  Includes includes(folders);
  includes.collect(source, "");
  return std::move(includes.files);
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

OptionFiles files_of_options(const std::vector<std::string>& options) {
  OptionFiles found;
  std::vector<std::string> words;
  for (const std::string& option : options)
    for (std::string& word : split(option, ' '))
      if (!word.empty()) words.push_back(std::move(word));
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    bool is_folder = false;
    for (const char* flag : {"-isystem", "-iquote", "-idirafter", "-I"}) {
      if (is_folder || !word.starts_with(flag)) continue;
      is_folder = true;
      const std::string joined = word.substr(std::strlen(flag));
      if (joined.empty() && i + 1 == words.size()) break;
      found.folders.push_back(joined.empty() ? words[++i] : joined);
    }
    std::error_code failed;
    if (!is_folder && std::filesystem::is_regular_file(word, failed)) found.files.push_back(word);
  }
  return found;
}

std::string hash_of_includes(const std::string& source, std::vector<std::string> folders,
                             const std::vector<std::string>& options) {
  const OptionFiles named = files_of_options(options);
  folders.insert(folders.end(), named.folders.begin(), named.folders.end());
  std::string contents;
  const auto add = [&](const std::string& name, const std::string& text) {
    contents += fmt::format("{}:{}{}:{}", name.size(), name, text.size(), text);
  };
  for (const auto& [name, text, path] : included_files(source, folders)) add(name, text);
  for (const std::string& file : named.files) {
    const std::string text = read_file(file).value_or("");
    add(file, text);
    for (const auto& [name, included, path] : included_files(text, folders)) add(name, included);
  }
  return contents.empty() ? std::string() : content_hash(contents);
}

}  // namespace ergotune
