#include "problem/program.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/files.hpp"
#include "base/process/environment.hpp"

namespace ergotune {

Template literal_template(std::string_view text) {
  // Literal double braces are replaced by expressions that evaluate to them.
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' && i + 1 < text.size() && text[i + 1] == '{') {
      escaped += "{{'{'}}";
      continue;
    }
    escaped += text[i];
  }
  return Template::parse(escaped);
}

std::filesystem::path find_program(const std::string& name, const std::filesystem::path& folder) {
  std::error_code error;
  const auto is_program = [&](const std::filesystem::path& file) {
    return std::filesystem::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0;
  };
  if (name.empty()) return {};
  if (name.find('/') != name.npos) return is_program(folder / name) ? folder / name : std::filesystem::path();
  const std::string path = environment_variable("PATH");
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t to = std::min(path.find(':', from), path.size());
    const std::filesystem::path file = std::filesystem::path(path.substr(from, to - from)) / name;
    if (is_program(file)) return file;
    from = to + 1;
  }
  return {};
}

std::filesystem::path folder_of_problem(const std::filesystem::path& problem_file) {
  const std::filesystem::path folder = folder_of(problem_file);
  return folder.empty() ? std::filesystem::current_path() : std::filesystem::absolute(folder);
}

std::string render_without_configuration(const Template& text, const std::filesystem::path& folder) {
  const std::vector<std::string> names = text.names();
  if (std::ranges::any_of(names, [](const std::string& name) { return name != "folder"; })) return {};
  const Value value(folder.string());
  return text.render([&](std::string_view name) { return name == "folder" ? &value : nullptr; });
}

const std::vector<std::string>& exit_status_names() {
  static const std::vector<std::string> names = {"ok",           "wrong_result", "unsupported", "runtime_error",
                                                 "launch_error", "timeout"};
  return names;
}

}  // namespace ergotune
