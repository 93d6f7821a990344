#include "power/nvml_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
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
  if (!name.empty() && std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c); })) {
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

namespace ergotune {

std::optional<DeviceFacts> nvml_gpu_facts(const std::string& uuid) {
  if (!uuid.starts_with("GPU-")) return std::nullopt;
  const auto library = nvml::Library::open();
  const nvml::NvmlDevice* gpu = library ? library->match(uuid, "") : nullptr;
  if (gpu == nullptr) return std::nullopt;
  const auto& nvml = library->functions();
  DeviceFacts facts;
  char name[128] = {};
  if (nvml.name(gpu->handle, name, sizeof name) == nvml::kOk) facts.name = name;
  unsigned mhz = 0;
  if (nvml.default_application_clock &&
      nvml.default_application_clock(gpu->handle, nvml::kGraphicsClock, &mhz) == nvml::kOk && mhz > 0)
    facts.default_core_clock_mhz = mhz;
  return facts;
}

std::vector<std::string> nvml_sharing_notes(const std::string& uuid, const std::string& pci_address) {
  constexpr int kProhibited = 2, kExclusiveProcess = 3;  // nvmlComputeMode_t
  std::vector<std::string> notes;
  const auto library = nvml::Library::open();
  const nvml::NvmlDevice* gpu = library ? library->match(uuid, pci_address) : nullptr;
  if (gpu == nullptr) return notes;
  const auto& nvml = library->functions();
  unsigned mig = 0, pending = 0;
  if (nvml::call(nvml.mig_mode, gpu->handle, &mig, &pending) == nvml::kOk && mig != 0)
    notes.push_back(
        "MIG is enabled: power, energy and clocks are those of the whole GPU, so leave its other instances idle, or "
        "tune for time");
  int mode = 0;
  if (nvml::call(nvml.compute_mode, gpu->handle, &mode) == nvml::kOk && mode == kProhibited)
    notes.push_back("its compute mode is \"prohibited\": no kernel can run (nvidia-smi -c DEFAULT permits it)");
  else if (mode == kExclusiveProcess)
    notes.push_back(
        "its compute mode is \"exclusive process\": one process at a time can use it, so end other programs before "
        "tuning");
  const char* pipes = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::path(pipes ? pipes : "/tmp/nvidia-mps") / "control", ignored))
    notes.push_back("an MPS server runs: kernels of other processes may run beside those that are measured");
  return notes;
}

}  // namespace ergotune
