// A whole program as the object of tuning: [program] of a problem file (docs/programs.md).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

/// A file that is written before a build or a run.
struct ProgramFile {
  std::string name;  ///< path relative to, and inside of, the folder into which it is written
  Template text;
};

/// Comparison of an output of a run with a reference.
struct ProgramComparison {
  Template file;  ///< relative to the working folder; empty: standard output
  std::filesystem::path reference;
  /// If given: tolerances for words that are numbers in both files; else the files must be equal byte for byte.
  std::optional<double> absolute_tolerance, relative_tolerance;
};

/// A program to tune. Strings are templates over parameters, constants and kProgramFolders. Commands run without a
/// shell.
struct Program {
  std::vector<Template> command;
  std::map<std::string, Template> environment;  ///< added to ergotune's environment for the run
  /// Working folder of the run; nullopt: the build's folder, else the folder of the problem file.
  std::optional<Template> folder;
  /// Build commands. They run once for each distinct text of the commands and of build_files, in a separate folder that
  /// is kept.
  std::vector<std::vector<Template>> build;
  std::vector<ProgramFile> build_files;  ///< written into the build's folder before the build
  std::vector<ProgramFile> files;        ///< written into the run's folder before the run of each configuration
  /// Files and folders (with all their contents) that determine results in addition to `command` and `build`.
  std::vector<std::filesystem::path> sources;
  /// Regular expressions (ECMAScript) by name of quantity, each with one group that matches the number. They are
  /// matched against each line of standard output and standard error; the last match counts.
  std::map<std::string, std::string> output;
  std::vector<Template> check_command;  ///< must exit with 0; finds the output in the file {{run}}/stdout
  std::string check_pattern;            ///< must match a line of the output
  std::optional<ProgramComparison> compare;
  /// Meaning of exit codes other than 0: the name of a Status, which may be "ok".
  std::map<int, std::string> exit_status;
  double time_limit = 0;  ///< time limit of one run, s; 0: RunConfig::time_limit
  SourcePlace place;
};

/// Additional names for templates of a program: the folders of the problem file, of the build and of the run.
inline constexpr std::string_view kProgramFolders[] = {"folder", "build", "run"};

/// Returns a template that renders to exactly `text`, even if it contains braces.
Template literal_template(std::string_view text);

/// Returns the path of an executable, searched as a shell in `folder` would; empty if it does not exist (yet).
std::filesystem::path find_program(const std::string& name, const std::filesystem::path& folder);

/// Returns the absolute folder of a problem file, against which the program's relative paths are resolved.
std::filesystem::path folder_of_problem(const std::filesystem::path& problem_file);

/// Renders a template that uses no name but {{folder}}; returns an empty string for other templates.
std::string render_without_configuration(const Template& text, const std::filesystem::path& folder);

/// Returns the names of statuses that exit_status accepts.
const std::vector<std::string>& exit_status_names();

}  // namespace ergotune
