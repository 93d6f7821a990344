// The source of a kernel and its launch, read for a first problem file.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/kernel_source/identifiers.hpp"
#include "base/kernel_source/outline.hpp"
#include "base/kernel_source/signature.hpp"
#include "problem/draft/kernel_use.hpp"
#include "problem/draft/problem_draft.hpp"
#include "problem/draft/source_launch.hpp"

namespace ergotune::draft {

/// Names of types that a source defines, and what they stand for.
using TypeNames = std::map<std::string, std::string>;

/// A type of the problem file, and the number of values per element: "float4" is four float32.
struct Element {
  std::string type;
  int width = 1;
};

/// Reads `typedef float real;`, `using real = float;` and `#define REAL float`.
TypeNames types_of(const kernel_source::Outline& outline);
/// A type without OpenCL's address space and without const.
std::string unqualified(const std::string& type);
std::string resolved(const TypeNames& types, const std::string& type);
std::optional<Element> element_of(const std::string& type);
/// Replaces sizeof(float) by 4; unknown types remain.
std::string with_sizes_of_types(const TypeNames& types, const std::string& expression);

struct SourceLanguage {
  std::string key;                 ///< key of [kernel.options]
  bool for_host = false;           ///< C and C++: functions for the CPU
  std::vector<std::string> marks;  ///< tokens before the name of a kernel
  std::string macro;               ///< macro that its run-time compiler defines
};

/// Returns nullptr for a file of another language.
const SourceLanguage* known_language(const std::filesystem::path& file);

/// A parameter that is a structure by value, whose members stand for it in the parameters from `first`.
struct Structure {
  std::string name, type;
  std::size_t first = 0;
  std::vector<std::string> members;
};

/// A header whose text stands in place of its #include line.
struct InsertedHeader {
  std::filesystem::path path = {};
  int line = 0, lines = 0;  ///< its first line in the text, from 1, and their number; 0: there is no such header
};

struct DraftSource {
  std::filesystem::path file, host;
  std::vector<std::string> header_folders;  ///< the file's own, then those that the user names
  SourceLanguage language;
  std::string all;   ///< headers, source and host program
  std::string text;  ///< what the run-time compiler reads
  kernel_source::Outline outline;
  kernel_source::Function kernel;
  std::vector<kernel_source::Parameter> parameters;
  std::vector<kernel_source::Macro> built;  ///< macros that the host program's options define
  std::vector<std::string> build_options;   ///< others of the host program that a problem keeps
  SourceLaunch launch;
  KernelUse use;
  kernel_source::Identifiers used;  ///< identifiers of the kernel and what it calls
  std::vector<Structure> structures = {};
  std::map<std::string, std::string> unread_structures = {};  ///< parameters that remain one, and why
  InsertedHeader header = {};                                 ///< that of the kernel

  /// Returns the expression that a variable is set to before the launch; empty if there is none.
  std::string set_to(const std::string& variable) const;
  /// Returns what the host program gives a macro in its options; empty if it does not.
  std::string built_with(const std::string& macro) const;
  /// Returns what a mark says of a macro that the host program's options define to a value that was not understood;
  /// empty for others.
  std::string unread_value(const std::string& macro) const;
  bool returns_void() const;
  /// Returns the number of arguments of the kernel, structures counted as one.
  std::size_t argument_count() const;
  std::vector<std::string> include_folders() const { return {header_folders.begin() + 1, header_folders.end()}; }
  /// Returns the value of an expression at the launch.
  std::optional<long> value(const std::string& expression) const { return source_value(all, expression, launch.at); }
  /// Returns the number that the launch passes for a parameter of the kernel; empty if it is not found.
  std::string launched_number(const std::string& parameter) const;
  /// Returns what a mark says of a parameter of the kernel for which the launch passes the counter of a loop around it;
  /// empty for others.
  std::string changing_value(const std::string& parameter) const;
  /// What a comment says of a value that the launch passes.
  std::string as_launched() const { return "  # as in " + (host.empty() ? "the source" : host.filename().string()); }
  /// Returns "kernel.cu:12" for a line of `text`.
  std::string place(int line) const;
  std::string launch_file() const { return host.empty() ? "this file" : host.filename().string(); }
};

/// Throws UserError for an unknown language, no kernel, several kernels without `wanted`, and parameters without names.
DraftSource read_draft_source(const std::string& text, const std::filesystem::path& file, const std::string& wanted,
                              const HostProgram& host, const std::vector<std::filesystem::path>& include_folders);

}  // namespace ergotune::draft
