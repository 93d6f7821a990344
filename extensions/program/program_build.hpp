// Builds of a program, each made once: in a folder of its own that is kept for sessions that come later.
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
  double seconds = 0;    ///< what it took now; 0 where it was there
  bool stopped = false;  ///< ended with the session
};

class ProgramBuilds {
 public:
  /// `cache`: where builds are kept. `beside`: the problem file's folder. `time_limit` in s for one step.
  ProgramBuilds(const Program& program, std::filesystem::path cache, std::filesystem::path beside, double time_limit)
      : program_(program), cache_(std::move(cache)), beside_(std::move(beside)), time_limit_(time_limit) {}

  /// The build of a configuration, made when it is not there yet. What has failed once in this process is not tried
  /// again. Waits for another session that makes it, until `stopping`. Throws UserError for what is no configuration's
  /// fault.
  BuildOutcome build(ProgramTemplates texts, Supervisor& supervisor, const std::atomic<bool>& stopping);
  /// Removes builds unused for a month, and what is left of those that were cut off.
  void prune() const;

 private:
  std::string key_of(const ProgramTemplates& texts);
  std::string contents(const std::filesystem::path& file);
  void throw_if_machines_fault(std::size_t step, const std::string& name, const std::string& words,
                               const SupervisedResult& result) const;
  BuildOutcome make(const ProgramTemplates& texts, const std::filesystem::path& folder, Supervisor& supervisor) const;

  const Program& program_;
  std::filesystem::path cache_, beside_;
  double time_limit_;
  std::map<std::string, std::string> hashes_;     ///< of files, by name
  std::map<std::string, BuildOutcome> failures_;  ///< by key
};

}  // namespace ergotune
