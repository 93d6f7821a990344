// Fills in a program's templates for one configuration: arguments, files and environment variables.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "problem/program.hpp"

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

}  // namespace ergotune
