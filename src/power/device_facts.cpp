#include "power/device_facts.hpp"

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

}  // namespace ergotune
