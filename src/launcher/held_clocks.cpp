#include "launcher/held_clocks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
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

HeldClocks& HeldClocks::of(const DeviceInfo& device) {
  static std::mutex mutex;
  // A forked process holds its own. Never destroyed: a queue may still reach a point that uses one.
  static auto* const all = new std::map<std::pair<pid_t, std::string>, HeldClocks*>;
  const std::lock_guard lock(mutex);
  HeldClocks*& one = (*all)[{::getpid(), device.id}];
  if (!one) one = new HeldClocks(device);
  return *one;
}

std::string HeldClocks::apply(const std::vector<std::filesystem::path>& wisdom, double latency) {
  constexpr double kPatience = 30;  // s
  const std::lock_guard lock(mutex_);
  if (applied_) return {};
  applied_ = true;
  std::string command = environment_variable("ERGOTUNE_COMMAND");
  if (command.empty()) command = "ergotune";
  std::vector<std::string> words{command, "clocks", "set", "--background", "--for", std::to_string(::getpid())};
  if (const std::string control = control_of(device_); !control.empty())
    words.insert(words.end(), {"--control", control});
  for (const auto& folder : wisdom)
    if (std::filesystem::exists(folder)) words.insert(words.end(), {"--wisdom", folder.string()});
  int ends[2] = {-1, -1};  // both stay open, so that a request never meets a pipe without a reader
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0)
    words.insert(words.end(), {"--requests", fmt::format("/proc/{}/fd/{}", ::getpid(), ends[0])});
  try {
    ProcessOptions options;
    options.timeout = kPatience;
    const ProcessResult result = run_process(words, options);
    if (!result.ok()) return result.timed_out ? "\"ergotune clocks set\" does not answer" : reason_of(result);
    const auto in_force = parse_json<nlohmann::json>(result.out, false);
    if (!in_force.is_object()) return {};
    const double common = in_force.value("core_clock_mhz", 0.0);
    latency = std::max(latency, in_force.value("clock_latency", 0.0));
    if (!(common > 0 && latency > 0)) return {};  // whether a change pays is not known
    follower_ = new ClockFollower(common, latency, [requests = ends[1]](double mhz) {
      const std::string line = fmt::format("{}\n", mhz);
      (void)!::write(requests, line.data(), line.size());
    });
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

void HeldClocks::begin(const Native& native, void* queue, double clock_mhz, double expected_seconds) {
  ClockFollower* const follower = follower_.load(std::memory_order_acquire);
  if (native.records(queue) || !follower->queued(clock_mhz, expected_seconds)) return;
  native.when_reached(queue, [=] { follower->reached(clock_mhz, expected_seconds); });
}

}  // namespace ergotune::launcher
