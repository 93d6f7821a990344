// Builds of a program, each made once in its own folder, which is kept for later sessions.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <string>

#include "ergotune/result.hpp"
#include "program/program_templates.hpp"
#include "program/supervisor.hpp"

namespace ergotune {

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

  /// Returns the build of a configuration, made if it does not exist yet. A build that failed in this process is not
  /// tried again. If another session is making it, waits until it is done or `stopping` is set. Throws UserError for
  /// failures that do not depend on the configuration.
  BuildOutcome build(ProgramTemplates texts, Supervisor& supervisor, const std::atomic<bool>& stopping);
  /// Removes builds unused for a month, and leftovers of interrupted ones.
  void prune() const;

 private:
  std::string key_of(const ProgramTemplates& texts);
  std::string contents(const std::filesystem::path& file);
  void throw_machine_fault(std::size_t step, const std::string& name, const std::string& words,
                           const SupervisedResult& result) const;
  BuildOutcome make(const ProgramTemplates& texts, const std::filesystem::path& folder, Supervisor& supervisor) const;

  const Program& program_;
  std::filesystem::path cache_, beside_;
  double time_limit_;
  std::map<std::string, std::string> hashes_;     ///< of files, by name
  std::map<std::string, BuildOutcome> failures_;  ///< by key
};

}  // namespace ergotune
