// A program's templates filled in for one configuration, and its builds, each made once in its own folder, which is
// kept for later sessions.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "ergotune/result.hpp"
#include "problem/program.hpp"
#include "program/supervisor.hpp"

namespace ergotune {

/// The values of names in templates: constants, the configuration, and folders.
class ProgramTemplates {
 public:
  ProgramTemplates(const Constants& constants, const std::vector<Parameter>& parameters,
                   const Configuration& configuration);
  /// `name`: "folder", "build" or "run".
  void set_folder(const std::string& name, const std::filesystem::path& path) { values_[name] = Value(path.string()); }
  std::string text(const Template& text) const;
  std::vector<std::string> texts(const std::vector<Template>& list) const;
  std::map<std::string, std::string> texts(const std::map<std::string, Template>& map) const;
  /// Writes files below `folder`. Throws UserError if one cannot be written.
  void write(const std::vector<ProgramFile>& files, const std::filesystem::path& folder) const;

 private:
  std::map<std::string, Value, std::less<>> values_;
};

/// A folder below the system's folder for temporary files, removed with this object. Creating one also removes those of
/// processes that died. Throws UserError if there is no space.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct BuildOutcome {
  Status status = Status::ok;
  std::string message;
  std::filesystem::path folder;
  double seconds = 0;    ///< s spent on this call; 0 if the build existed
  bool stopped = false;  ///< interrupted because the session ends
};

class ProgramBuilds {
 public:
  /// `cache`: folder of builds. `beside`: the problem file's folder. `time_limit`: s for one step.
  ProgramBuilds(const Program& program, std::filesystem::path cache, std::filesystem::path beside, double time_limit)
      : program_(program), cache_(std::move(cache)), beside_(std::move(beside)), time_limit_(time_limit) {}

  /// Returns the build of a configuration, made if it does not exist yet or if the configuration's program is not in
  /// it. A build that failed in this process is not tried again. If another session is making it, waits until it is
  /// done or `stopping` is set. Throws UserError for failures that do not depend on the configuration.
  BuildOutcome build(ProgramTemplates texts, Supervisor& supervisor, const std::atomic<bool>& stopping);
  /// Removes builds unused for a month, and leftovers of interrupted ones.
  void prune() const;

 private:
  std::string key_of(const ProgramTemplates& texts);
  std::string contents(const std::filesystem::path& file);
  void throw_machine_fault(std::size_t step, const std::string& name, const std::string& message,
                           const SupervisedResult& result) const;
  BuildOutcome make(const ProgramTemplates& texts, const std::filesystem::path& folder, Supervisor& supervisor);
  std::filesystem::path built_program(const ProgramTemplates& texts, const std::filesystem::path& folder) const;
  BuildOutcome without_program(const std::filesystem::path& program, BuildOutcome outcome) const;

  const Program& program_;
  std::filesystem::path cache_, beside_;
  double time_limit_;
  std::map<std::string, std::string> hashes_;     ///< of files, by name
  std::map<std::string, BuildOutcome> failures_;  ///< by key, and by key and program for builds without that program
  std::map<std::string, std::string> output_;     ///< of the builds made in this process, by folder
};

}  // namespace ergotune
