#include "tune/session/device_lock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "base/files.hpp"
#include "base/process/environment.hpp"
#include "base/process/file_lock.hpp"
#include "ergotune/error.hpp"

namespace ergotune {
namespace {

/// The same for everybody on this machine, whatever their TMPDIR.
constexpr const char* kFolder = "/tmp";
constexpr auto kPatience = std::chrono::milliseconds(100);

std::filesystem::path lock_of(const DeviceInfo& device) {
  const std::string folder = environment_variable("ERGOTUNE_DEVICE_LOCK");
  std::string name = device.is_cpu                 ? "processor"
                     : !device.uuid.empty()        ? device.uuid
                     : !device.pci_address.empty() ? device.pci_address
                                                   : device.id;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-'; }, '-');
  return std::filesystem::path(folder.empty() ? kFolder : folder) / ("ergotune-device-" + name + ".lock");
}

/// "process 4711 (ergotune tune gemm.toml)".
std::string as_text(long process) {
  if (process <= 0) return "another process";
  std::string line = read_file(fmt::format("/proc/{}/cmdline", process)).value_or("");
  while (!line.empty() && line.back() == '\0') line.pop_back();
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  if (line.size() > 80) line = line.substr(0, 77) + "...";
  return line.empty() ? fmt::format("process {}", process) : fmt::format("process {} ({})", process, line);
}

}  // namespace

std::shared_ptr<void> wait_for_lock(const DeviceInfo& device, const std::function<void(const std::string&)>& announce,
                                    const std::atomic<bool>* interrupted) {
  if (environment_variable("ERGOTUNE_DEVICE_LOCK") == "off") return nullptr;
  static std::mutex mutex;
  static std::map<std::filesystem::path, std::weak_ptr<FileLock>> held;
  const std::filesystem::path file = lock_of(device);
  for (bool reported = false;; std::this_thread::sleep_for(kPatience)) {
    if (interrupted && interrupted->load()) return nullptr;
    long holder = 0;
    {
      const std::lock_guard guard(mutex);
      if (auto ours = held[file].lock()) return ours;
      auto lock = std::make_shared<FileLock>(file, true);
      std::error_code failure;
      if (lock->take(failure)) {
        if (failure) return nullptr;
        held[file] = lock;
        return lock;
      }
      holder = lock->holder();
    }
    if (reported) continue;
    reported = true;
    // All devices of the CPU (host, OpenCL) share one lock, and its holder may use another than this session.
    const std::string message = fmt::format("{} measures on {}{} ({})", as_text(holder),
                                            device.is_cpu ? "the CPU that is also " : "", device.id, device.name);
    const std::string otherwise =
        "ERGOTUNE_DEVICE_LOCK=off in the environment lets both measure and disturb each other";
    if (!announce) throw UserError(fmt::format("{}; wait until it has ended, or {}", message, otherwise));
    announce(fmt::format("{}: this session waits until it has ended; Ctrl-C gives up, {}", message, otherwise));
  }
}

std::shared_ptr<void> wait_for_locks(std::vector<DeviceInfo> devices,
                                     const std::function<void(const std::string&)>& announce,
                                     const std::atomic<bool>* interrupted) {
  if (devices.size() == 1) return wait_for_lock(devices.front(), announce, interrupted);
  std::ranges::sort(devices, [](const DeviceInfo& a, const DeviceInfo& b) { return lock_of(a) < lock_of(b); });
  auto turns = std::make_shared<std::vector<std::shared_ptr<void>>>();
  for (const DeviceInfo& device : devices) {
    turns->push_back(wait_for_lock(device, announce, interrupted));
    if (interrupted && interrupted->load()) return nullptr;
  }
  return turns;
}

}  // namespace ergotune
