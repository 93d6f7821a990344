#include "device/driver_trial.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

#include "base/process/process.hpp"
#include "base/text.hpp"

namespace ergotune::device {
namespace {

constexpr double kSeconds = 60;  // starting a driver takes some seconds on machines with many GPUs

std::map<std::string, std::string, std::less<>>& reasons() {
  static std::map<std::string, std::string, std::less<>> reasons;
  return reasons;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n'))
    if (const auto text = trimmed(line); !text.empty()) lines.emplace_back(text);
  return lines;
}

ProcessResult trial(const std::string& command, const std::vector<std::string>& without, bool traced = false) {
  ProcessOptions options;
  options.timeout = kSeconds;
  if (traced) options.environment["LD_DEBUG"] = "files";
  return run_process(
      {command, std::string(kTrialVerb), std::string(kTrialOption), fmt::format("{}", fmt::join(without, ","))},
      options);
}

/// The last of `lines`, as one.
std::string end_of(const std::vector<std::string>& lines, const char* separator) {
  constexpr std::ptrdiff_t kLines = 3;
  return fmt::format("{}", fmt::join(lines.end() - std::min(std::ssize(lines), kLines), lines.end(), separator));
}

/// The libraries that a backend opens by itself, not as those of others: glibc's loader names them.
std::vector<std::string> libraries_of(const std::string& command, const std::string& backend) {
  std::vector<std::string> others, files;
  for (const Backend& other : backends())
    if (other.name != backend) others.emplace_back(other.name);
  constexpr std::string_view kOpened = "opening file=";
  for (const std::string& line : lines_of(trial(command, others, true).err)) {
    const std::size_t at = line.find(kOpened);
    if (at == std::string::npos || line.find("direct_opencount=") == std::string::npos) continue;
    const std::string file =
        line.substr(at + kOpened.size(), line.find(' ', at + kOpened.size()) - at - kOpened.size());
    if (file.find("/libgcc_s.so") == std::string::npos) files.push_back(file);  // glibc opens it to end threads
  }
  return files;
}

std::string reason_of(const std::string& command, const std::string& backend, const ProcessResult& result) {
  std::string reason = result.timed_out ? fmt::format("the driver did not answer within {:.0f} s", kSeconds)
                       : result.signal  ? fmt::format("the driver ended the process (signal {}, {})", result.signal,
                                                      ::strsignal(result.signal))
                                        : fmt::format("the driver ended the process (exit code {})", result.exit_code);
  if (const auto last = lines_of(result.err); !last.empty()) reason += ": " + end_of(last, "; ");
  if (result.timed_out) return reason;
  if (const auto files = libraries_of(command, backend); !files.empty())
    reason += "; the libraries that it opened last: " + end_of(files, ", ");
  return reason;
}

}  // namespace

std::string left_out(std::string_view backend) {
  const auto found = reasons().find(backend);
  return found == reasons().end() ? std::string() : found->second;
}

std::vector<std::string> leave_out_crashing_drivers(const std::string& command) {
  std::vector<std::string> names;
  try {
    while (names.size() < backends().size()) {
      const ProcessResult result = trial(command, names);
      const std::vector<std::string> tried = lines_of(result.out);
      if (result.ok() || tried.empty()) break;
      names.push_back(tried.back());
      reasons()[tried.back()] = reason_of(command, tried.back(), result);
    }
  } catch (const Error&) {  // no process: list_devices() goes without
  }
  return names;
}

void try_drivers(const std::string& without) {
  const std::vector<std::string> names = split(without);
  for (const Backend& backend : backends()) {
    if (std::ranges::find(names, backend.name) != names.end()) continue;
    fmt::print("{}\n", backend.name);
    std::fflush(stdout);
    try {
      std::string note;
      backend.list(&note);
    } catch (const std::exception&) {  // list_devices() reports it
    }
  }
}

}  // namespace ergotune::device
