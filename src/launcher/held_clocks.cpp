#include "launcher/held_clocks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <mutex>
#include <set>

#include "base/process/environment.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "ergotune/error.hpp"

namespace ergotune::launcher {
namespace {

/// Returns the control of an NVIDIA GPU by UUID, which does not depend on enumeration order. Empty: the command finds
/// the only control.
std::string control_of(const DeviceInfo& device) {
  if (device.uuid.starts_with("GPU-")) return "nvml:" + device.uuid;
  return device.is_cpu ? "cpufreq" : "";
}

/// Returns the line of a command's standard error that contains the error message.
std::string reason_of(const ProcessResult& result) {
  std::string reason;
  for (const std::string& line : split(result.err, '\n'))
    if (!line.empty() && !line.starts_with("note: ")) reason = line;
  return reason.empty() ? fmt::format("\"ergotune clocks set\" ended with {}", result.exit_code) : reason;
}

}  // namespace

std::string apply_wisdom_clocks(const DeviceInfo& device, const std::vector<std::filesystem::path>& wisdom) {
  constexpr double kPatience = 30;  // s
  static std::mutex mutex;
  static std::set<std::pair<pid_t, std::string>> asked;  // forked processes start their own
  const std::lock_guard lock(mutex);
  if (!asked.emplace(::getpid(), device.id).second) return {};
  std::string command = environment_variable("ERGOTUNE_COMMAND");
  if (command.empty()) command = "ergotune";
  std::vector<std::string> words{command, "clocks", "set", "--background", "--for", std::to_string(::getpid())};
  if (const std::string control = control_of(device); !control.empty())
    words.insert(words.end(), {"--control", control});
  for (const auto& folder : wisdom)
    if (std::filesystem::exists(folder)) words.insert(words.end(), {"--wisdom", folder.string()});
  try {
    ProcessOptions options;
    options.timeout = kPatience;
    const ProcessResult result = run_process(words, options);
    return result.ok()        ? std::string()
           : result.timed_out ? "\"ergotune clocks set\" does not answer"
                              : reason_of(result);
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace ergotune::launcher
