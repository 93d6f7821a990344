#include "problem/files/includes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/kernel_source/outline.hpp"
#include "base/process/environment.hpp"
#include "base/text.hpp"
#include "ergotune/argument.hpp"

namespace ergotune {
namespace {

/// The headers that macros stand for in `#include NAME`, by the macro's name.
using HeaderMacros = std::multimap<std::string, std::string>;

/// The header in `"x"` or `<x>` at the beginning of a text; empty if there is none.
std::string quoted_header(std::string_view text) {
  if (text.empty() || (text.front() != '"' && text.front() != '<')) return {};
  const std::size_t end = text.find_first_of(text.front() == '<' ? ">\n" : "\"\n", 1);
  return end == std::string_view::npos || text[end] == '\n' ? std::string() : std::string(text.substr(1, end - 1));
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

std::string first_identifier(std::string_view text) {
  const auto end = std::ranges::find_if_not(text, kernel_source::in_identifier);
  return {text.begin(), end};
}

/// Adds the macros that a source defines as the name of a header.
void add_header_macros(const std::string& source, HeaderMacros& macros) {
  for (std::size_t at = source.find("define"); at != std::string::npos; at = source.find("define", at + 1)) {
    const std::string_view rest = without_blanks(std::string_view(source).substr(at + 6));
    const std::string name = first_identifier(rest);
    std::string header = quoted_header(without_blanks(rest.substr(name.size())));
    if (!name.empty() && !header.empty()) macros.emplace(name, std::move(header));
  }
}

/// Adds the one that a definition in a compiler option (NAME="x", perhaps quoted for a shell) makes.
void add_header_macro(std::string definition, HeaderMacros& macros) {
  std::erase_if(definition, [](char c) { return c == '\\' || c == '\''; });
  const std::size_t equals = definition.find('=');
  if (equals == std::string::npos) return;
  std::string header = quoted_header(std::string_view(definition).substr(equals + 1));
  if (!header.empty()) macros.emplace(definition.substr(0, equals), std::move(header));
}

/// Returns the names in `#include "x"`, `#include <x>`, `#include NAME` and Fortran's `include 'x'`.
std::vector<std::string> included_names(const std::string& source, const HeaderMacros& macros) {
  std::vector<std::string> names;
  for (std::size_t at = source.find("include"); at != std::string::npos; at = source.find("include", at + 1)) {
    std::size_t i = at + 7;
    while (i < source.size() && (source[i] == ' ' || source[i] == '\t')) ++i;
    if (i >= source.size()) break;
    const char open = source[i];
    if (i > at + 7 && kernel_source::in_identifier(open)) {
      const auto [first, last] = macros.equal_range(first_identifier(std::string_view(source).substr(i)));
      for (auto macro = first; macro != last; ++macro) names.push_back(macro->second);
    }
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
  Includes(const std::vector<std::string>& folders, HeaderMacros macros)
      : folders_(folders), macros_(std::move(macros)) {}

  void collect(const std::string& source, const std::string& beside) {
    add_header_macros(source, macros_);
    for (const std::string& name : included_names(source, macros_)) {
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
  HeaderMacros macros_;
  std::unordered_map<std::string, std::optional<std::string>> known_;  ///< by path; empty: there is no such file
  std::set<std::string> seen_;
};

/// Folders in an environment variable of compilers (GCC manual, "Environment Variables Affecting GCC").
void add_folders_of(const char* variable, std::vector<std::string>& folders) {
  for (const std::string& folder : split(environment_variable(variable), ':'))
    if (!folder.empty()) folders.push_back(folder);
}

/// Contents of a file that is linked; of a large one its size and time.
IncludedFile linked_file(const std::string& name, const std::filesystem::path& path) {
  constexpr std::uintmax_t kLarge = std::uintmax_t{16} << 20;
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  if (size > kLarge) {
    const auto time = std::filesystem::last_write_time(path, failed).time_since_epoch().count();
    return {name, fmt::format("{} {}", size, time), path};
  }
  return {name, read_file(path).value_or(""), path};
}

/// The library that the linker finds for -lNAME in these folders; none: one of the system.
std::optional<IncludedFile> library(const std::string& name, const std::vector<std::string>& folders) {
  std::error_code failed;
  for (const std::string& folder : folders) {
    for (const char* ending : {".so", ".a"}) {
      const auto path = std::filesystem::path(folder) / ("lib" + name + ending);
      if (std::filesystem::is_regular_file(path, failed)) return linked_file("-l" + name, path);
    }
  }
  return std::nullopt;
}

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
  std::vector<std::string> named, library_folders, libraries, definitions;
  const std::pair<std::string_view, std::vector<std::string>*> flags[] = {
      {"-isystem", &folders},   {"-iquote", &folders}, {"-idirafter", &folders}, {"-I", &folders},
      {"-L", &library_folders}, {"-l", &libraries},    {"-D", &definitions}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto* const flag =
        std::ranges::find_if(flags, [&](const auto& known) { return parts[i].starts_with(known.first); });
    std::error_code failed;
    if (flag == std::end(flags)) {
      if (std::filesystem::is_regular_file(parts[i], failed)) named.push_back(parts[i]);
    } else if (parts[i].size() > flag->first.size()) {
      flag->second->push_back(parts[i].substr(flag->first.size()));
    } else if (i + 1 < parts.size()) {
      flag->second->push_back(parts[++i]);
    }
  }
  for (const char* variable : {"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"}) add_folders_of(variable, folders);
  add_folders_of("LIBRARY_PATH", library_folders);
  HeaderMacros macros;
  for (const std::string& definition : definitions) add_header_macro(definition, macros);
  Includes includes(folders, std::move(macros));
  includes.collect(source, "");
  for (const std::string& file : named) {
    includes.files.push_back(linked_file(file, file));
    includes.collect(std::string(includes.files.back().text), std::filesystem::path(file).parent_path().string());
  }
  for (const std::string& name : libraries)
    if (auto file = library(name, library_folders)) includes.files.push_back(std::move(*file));
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
