// A whole program as what is tuned: [program] of a problem file (docs/programs.md).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

/// A file that is written before something runs.
struct ProgramFile {
  std::string name;  ///< relative to the folder it is written in, and below it
  Template text;
};

/// What a run leaves, held against what is right.
struct ProgramComparison {
  Template file;  ///< relative to the working folder; empty: the standard output
  std::filesystem::path reference;
  /// Given: words that are numbers in both may differ by so much; else every byte counts.
  std::optional<double> absolute_tolerance, relative_tolerance;
};

/// Texts are templates over parameters, constants and the folders below. No shell sees them.
struct Program {
  std::vector<Template> command;
  std::map<std::string, Template> environment;  ///< added to ergotune's own, for the run
  /// Where it runs; not given: where it was built, else beside the problem file.
  std::optional<Template> folder;
  /// Commands that run once for each different text of theirs (and of build_files), in a folder of its own that is
  /// kept.
  std::vector<std::vector<Template>> build;
  std::vector<ProgramFile> build_files;  ///< written into the build's folder before it
  std::vector<ProgramFile> files;        ///< written into the run's folder before each configuration
  /// What besides command and build determines results: files, and folders with all that is in them.
  std::vector<std::filesystem::path> sources;
  /// Quantities by name: a regular expression (ECMAScript) with one group, the number. Looked for in each line of
  /// standard output and error; the last match counts.
  std::map<std::string, std::string> output;
  std::vector<Template> check_command;  ///< must end with 0; sees the output in the file {{run}}/stdout
  std::string check_pattern;            ///< must match a line of the output
  std::optional<ProgramComparison> compare;
  /// What an exit code other than 0 says: a Status by name, "ok" too.
  std::map<int, std::string> exit_status;
  double time_limit = 0;  ///< s of one run; 0: RunConfig::time_limit
  SourcePlace place;
};

/// Names that templates of a program see besides: the problem file's folder, the build's, the run's.
inline constexpr std::string_view kProgramFolders[] = {"folder", "build", "run"};

/// A template that is this text, whatever stands in it.
Template literal_template(std::string_view text);

/// Where the program itself is: as a shell would find it from `folder`; empty where it is not there (yet).
std::filesystem::path find_program(const std::string& name, const std::filesystem::path& folder);

/// The folder where a problem file lies, absolute: where relative paths of its program begin.
std::filesystem::path home_of(const std::filesystem::path& problem_file);

/// A text as far as it is known without a configuration (it names nothing but {{folder}}); empty where it is not.
std::string known_text(const Template& text, const std::filesystem::path& folder);

/// Its names of statuses for exit_status.
const std::vector<std::string>& exit_status_names();

}  // namespace ergotune
