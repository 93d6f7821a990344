#include "power/nvml_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/process/environment.hpp"
#include "base/sysfs.hpp"

namespace ergotune::nvml {

double number(const Value& value, unsigned type) {
  switch (type) {
    case 0:
      return value.d;
    case 1:
      return value.ui;
    case 2:
      return static_cast<double>(value.ul);
    case 3:
      return static_cast<double>(value.ull);
    case 4:
      return static_cast<double>(value.sll);
    case 5:
      return value.si;
    case 6:
      return value.us;
    default:
      return 0;
  }
}

std::shared_ptr<const Library> Library::open(std::string* reason) {
  return open_file(environment_variable("ERGOTUNE_NVML"), reason);
}

std::shared_ptr<const Library> Library::open_file(const std::string& name, std::string* reason) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<const Library>> open_libraries;
  const std::string file = name.empty() ? "libnvidia-ml.so.1" : name;
  std::lock_guard lock(mutex);
  if (auto shared = open_libraries[file].lock()) return shared;
  std::shared_ptr<Library> library(new Library(file));
  if (!library->start(reason)) return nullptr;
  open_libraries[file] = library;
  return library;
}

bool Library::start(std::string* reason) {
  auto fail = [&](const std::string& why) {
    if (reason) *reason = functions_.library_name() + ": " + why;
    return false;
  };
  const auto& f = functions_;
  if (!f.usable()) {
    if (reason) *reason = f.problem();
    return false;
  }
  if (const int code = f.init(); code != kOk) return fail(fmt::format("{}: {}", f.init.symbol(), error(code)));
  started_ = true;
  char text[96] = {};
  if (f.driver_version && f.driver_version(text, sizeof text) == kOk) driver_version_ = text;
  unsigned count = 0;
  if (const int code = f.device_count(&count); code != kOk)
    return fail(fmt::format("{}: {}", f.device_count.symbol(), error(code)));
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice gpu;
    gpu.index = i;
    // A lost GPU must not prevent the enumeration of the others.
    if (f.handle_by_index(i, &gpu.handle) != kOk) continue;
    if (f.uuid(gpu.handle, text, sizeof text) == kOk) gpu.uuid = text;
    if (f.name(gpu.handle, text, sizeof text) == kOk) gpu.name = text;
    PciInfo pci{};
    if (f.pci_info && f.pci_info(gpu.handle, &pci) == kOk) gpu.pci_address = normalise_pci_address(pci.bus_id);
    if (f.architecture && f.architecture(gpu.handle, &gpu.architecture) != kOk) gpu.architecture = 0;
    gpus_.push_back(std::move(gpu));
  }
  return true;
}

Library::~Library() {
  if (started_) functions_.shutdown();
}

std::string Library::error(int code) const {
  const char* message = functions_.usable() ? functions_.error_string(code) : nullptr;
  return fmt::format("{} (NVML code {})", message && *message ? message : "unknown error", code);
}

const NvmlDevice* Library::find(const std::string& name) const {
  if (!name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); })) {
    for (const auto& gpu : gpus_)
      if (std::to_string(gpu.index) == name) return &gpu;
    return nullptr;
  }
  if (const NvmlDevice* gpu = match(name, name)) return gpu;
  const NvmlDevice* found = nullptr;
  for (const auto& gpu : gpus_) {
    if (name.size() < 8 || !gpu.uuid.starts_with(name)) continue;
    if (found) return nullptr;
    found = &gpu;
  }
  return found;
}

const NvmlDevice* Library::match(const std::string& uuid, const std::string& pci_address) const {
  if (!uuid.empty())
    for (const auto& gpu : gpus_)
      if (gpu.uuid == uuid) return &gpu;
  const std::string pci = normalise_pci_address(pci_address);
  if (!pci.empty())
    for (const auto& gpu : gpus_)
      if (gpu.pci_address == pci) return &gpu;
  return nullptr;
}

}  // namespace ergotune::nvml
