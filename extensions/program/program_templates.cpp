#include "program/program_templates.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/files.hpp"
#include "ergotune/error.hpp"

namespace ergotune {
namespace {

constexpr std::string_view kPrefix = "ergotune-program-";

/// Removes folders left by killed processes.
void remove_stale(const std::filesystem::path& top) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(top, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    long pid = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), pid);
    if (pid > 0 && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH)
      std::filesystem::remove_all(entry.path(), error);
  }
}

}  // namespace

ProgramTemplates::ProgramTemplates(const Constants& constants, const std::vector<Parameter>& parameters,
                                   const Configuration& configuration) {
  for (const auto& [name, value] : constants) values_.insert_or_assign(std::string(name), value);
  for (std::size_t i = 0; i < std::min(parameters.size(), configuration.size()); ++i)
    values_.insert_or_assign(parameters[i].name, configuration[i]);
}

std::string ProgramTemplates::text(const Template& text) const {
  return text.render([this](std::string_view name) -> const Value* {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second;
  });
}

std::vector<std::string> ProgramTemplates::texts(const std::vector<Template>& list) const {
  std::vector<std::string> strings;
  for (const Template& item : list) strings.push_back(text(item));
  return strings;
}

std::map<std::string, std::string> ProgramTemplates::texts(const std::map<std::string, Template>& map) const {
  std::map<std::string, std::string> strings;
  for (const auto& [name, item] : map) strings[name] = text(item);
  return strings;
}

void ProgramTemplates::write(const std::vector<ProgramFile>& files, const std::filesystem::path& folder) const {
  for (const ProgramFile& file : files) {
    const std::filesystem::path place = folder / file.name;
    std::error_code error;
    std::filesystem::create_directories(place.parent_path(), error);
    write_named_file(place, text(file.text));
  }
}

ScratchFolder::ScratchFolder() {
  std::error_code error;
  std::filesystem::path top = std::filesystem::temp_directory_path(error);
  if (error) top = "/tmp";
  remove_stale(top);
  std::string name = (top / fmt::format("{}{}-XXXXXX", kPrefix, ::getpid())).string();
  if (!::mkdtemp(name.data()))
    throw UserError(fmt::format("no temporary folder can be made in {}: {}; TMPDIR names another place", top.string(),
                                std::strerror(errno)));
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

}  // namespace ergotune
