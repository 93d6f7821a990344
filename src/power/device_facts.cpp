#include "power/device_facts.hpp"

#include <cstdlib>
#include <filesystem>

#include "power/nvml_library.hpp"

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
