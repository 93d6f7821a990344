// A program's templates for one configuration: the words of its commands, files and variables.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "problem/program.hpp"

namespace ergotune {

/// What names stand for: constants, the configuration, and the folders that are known.
class ProgramTemplates {
 public:
  ProgramTemplates(const Constants& constants, const std::vector<Parameter>& parameters,
                   const Configuration& configuration);
  /// "folder", "build" or "run".
  void set_folder(const std::string& name, const std::filesystem::path& path) { values_[name] = Value(path.string()); }
  std::string text(const Template& text) const;
  std::vector<std::string> texts(const std::vector<Template>& list) const;
  std::map<std::string, std::string> texts(const std::map<std::string, Template>& map) const;
  /// Writes them below `folder`. Throws UserError when it cannot be written.
  void write(const std::vector<ProgramFile>& files, const std::filesystem::path& folder) const;

 private:
  std::map<std::string, Value, std::less<>> values_;
};

/// A folder of its own below the system's for temporary files, gone with this object. Those whose process died are
/// removed when another is made. Throws UserError when there is no room.
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

}  // namespace ergotune
