#include "tune/session/session_changes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <vector>

#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "problem/document/problem_document.hpp"
#include "problem/files/source_text.hpp"

namespace ergotune {
namespace {

/// Device, driver and compiler of "device | driver | compiler"; a simulated or replayed device alone.
std::array<std::string, 3> parts_of(const std::string& identity) {
  constexpr std::string_view kSeparator = " | ";
  std::array<std::string, 3> parts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < parts.size() && begin <= identity.size(); ++i) {
    const std::size_t end = i + 1 < parts.size() ? identity.find(kSeparator, begin) : std::string::npos;
    parts[i] = identity.substr(begin, end - begin);
    if (end == std::string::npos) break;
    begin = end + kSeparator.size();
  }
  return parts;
}

struct NamedSource {
  std::string name, text;
};

/// All sources by their place in the problem.
std::map<std::string, NamedSource> sources_of(const Problem& problem) {
  std::map<std::string, NamedSource> sources;
  const auto add = [&](const Kernel& kernel, const std::string& role) {
    for (const KernelSource& source : kernel.sources)
      sources.try_emplace(
          fmt::format("{}/{}/{}", role, kernel.name, to_string(source.language)),
          NamedSource{source.file.empty() ? fmt::format("the source of {}", kernel.function.text())
                                          : fmt::format("the source {}", source.file.filename().string()),
                      is_compiled_code(source.text) || source.language == Language::fortran ||
                              source.text.starts_with(kPythonCallable)
                          ? source.text
                          : without_comments(source.text)});
  };
  for (const Kernel& kernel : problem.kernels) {
    add(kernel, "kernel");
    if (kernel.verification && kernel.verification->reference)
      add(*kernel.verification->reference, "reference of " + kernel.name);
  }
  if (problem.verification.reference) add(*problem.verification.reference, "reference");
  return sources;
}

/// What differs between the lines of two Python functions (ergotune/_callables/identity.py).
void add_callable_changes(const std::string& before, const std::string& now, std::set<std::string>& into) {
  const auto lines_of = [](const std::string& text) {
    std::set<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.insert(line);
    return lines;
  };
  const std::set<std::string> old = lines_of(before), present = lines_of(now);
  std::vector<std::string> differing;
  std::ranges::set_symmetric_difference(old, present, std::back_inserter(differing));
  for (const std::string& line : differing) {
    const std::string_view text = std::string_view(line).substr(std::min<std::size_t>(line.size(), 3));  // "// "
    if (text.starts_with("argument "))
      into.insert(fmt::format("the {}", text.substr(0, text.find(':'))));
    else if (text.starts_with("verified: "))
      into.insert("its verification or a tolerance");
    else if (text.starts_with("version: "))
      into.insert("version");
    else if (text.starts_with("Python "))
      into.insert("the version of Python");
    else
      into.insert("the function, its verification, or what they call");
  }
}

/// Adds the paths, of two keys at most, of what differs outside of sources.
void add_changes(const nlohmann::json& before, const nlohmann::json& now, const std::string& path, int depth,
                 std::set<std::string>& into) {
  if (before == now) return;
  constexpr int kDepth = 2;
  if (depth == kDepth || !before.is_object() || !now.is_object()) {
    into.insert(path);
    return;
  }
  std::set<std::string> keys;
  for (const nlohmann::json* side : {&before, &now})
    for (const auto& [key, value] : side->items()) keys.insert(key);
  keys.erase("source");
  for (const std::string& key : keys)
    add_changes(before.value(key, nlohmann::json()), now.value(key, nlohmann::json()),
                path.empty() ? key : path + "." + key, depth + 1, into);
}

/// The identity without the clocks that a device adds to the parameters.
nlohmann::json identity_of_code(Problem problem) {
  std::erase_if(problem.parameters, [](const Parameter& p) { return p.kind != ParameterKind::code; });
  return nlohmann::json::parse(identity_of(problem));
}

}  // namespace

std::string device_changes(const std::string& before, const std::string& now) {
  if (before == now) return {};
  const auto old = parts_of(before), present = parts_of(now);
  std::vector<std::string> changes;
  for (std::size_t i = 0; i < old.size(); ++i) {
    constexpr std::array kNames = {"device", "driver", "compiler"};
    if (old[i] == present[i]) continue;
    changes.push_back(fmt::format("the {} was \"{}\" and is \"{}\"", kNames[i], old[i], present[i]));
    if (i == 0) break;  // another device has another driver
  }
  return fmt::format("{}", fmt::join(changes, ", "));
}

std::string problem_changes(const Problem& before, const Problem& now) {
  std::set<std::string> changes;
  bool python = false;
  const auto old = sources_of(before), present = sources_of(now);
  for (const auto& [place, source] : present) {
    const auto found = old.find(place);
    const bool of_python = source.text.starts_with(kPythonCallable);
    python = python || of_python;
    if (of_python && found != old.end())
      add_callable_changes(found->second.text, source.text, changes);
    else if (found == old.end() || found->second.text != source.text)
      changes.insert(source.name);
  }
  for (const auto& [place, source] : old)
    if (!present.contains(place)) changes.insert(source.name);
  try {
    add_changes(identity_of_code(before), identity_of_code(now), {}, 0, changes);
  } catch (const Error&) {  // a file of the earlier problem is gone
  }
  // The name of a Python function has a hash of what was named already.
  if (python && changes.size() > 1) changes.erase("kernel.function");
  return fmt::format("{}", fmt::join(changes, ", "));
}

}  // namespace ergotune
