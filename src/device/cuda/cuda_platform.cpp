#include "device/cuda/cuda_platform.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/sysfs.hpp"
#include "device/backend.hpp"
#include "device/cuda/cuda_multiprocessors.hpp"
#include "device/entries.hpp"

namespace ergotune::cuda {
namespace {

std::string uuid_of(CUdevice device) {
  CUuuid uuid{};
  const CUresult code =
      api().cuDeviceGetUuid_v2 ? api().cuDeviceGetUuid_v2(&uuid, device) : api().cuDeviceGetUuid(&uuid, device);
  if (code != CUDA_SUCCESS) return {};
  return device::gpu_uuid(uuid.bytes);
}

std::string pci_address_of(CUdevice device) {
  char text[32] = {};
  if (api().cuDeviceGetPCIBusId(text, sizeof text, device) != CUDA_SUCCESS) return {};
  return normalise_pci_address(text);
}

DeviceEntry describe(CUdevice device, int number, int driver_version) {
  DeviceEntry entry;
  entry.device = device;
  DeviceInfo& info = entry.info;
  info.id = fmt::format("cuda:{}", number);
  info.backend = "cuda";
  char name[256] = {};
  api().cuDeviceGetName(name, sizeof name - 1, device);
  info.name = name;
  info.uuid = uuid_of(device);
  info.pci_address = pci_address_of(device);
  info.driver_version = fmt::format("CUDA {}.{}", driver_version / 1000, driver_version % 1000 / 10);

  const auto attribute = [&](DeviceAttribute which) -> std::int64_t {
    int value = 0;
    return api().cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
  };
  const auto limit = [&](DeviceAttribute which) {
    const std::int64_t value = attribute(which);
    return Value(value > 0 ? value : device::kNoLimit);
  };
  entry.architecture = static_cast<int>(attribute(COMPUTE_CAPABILITY_MAJOR) * 10 + attribute(COMPUTE_CAPABILITY_MINOR));
  entry.shared_limit = static_cast<int>(attribute(MAX_SHARED_MEMORY_PER_BLOCK));
  entry.shared_limit_optin =
      std::max(entry.shared_limit, static_cast<int>(attribute(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)));
  std::size_t memory = 0;
  api().cuDeviceTotalMem(&memory, device);
  Constants& p = info.properties;
  p["device.name"] = info.name;
  p["device.max_threads_per_block"] = limit(MAX_THREADS_PER_BLOCK);
  // limit of static shared memory; dynamic shared memory is limited by shared_limit_optin
  // (device.shared_memory_per_block_optin)
  p["device.shared_memory_per_block"] = Value(std::int64_t{entry.shared_limit});
  p["device.shared_memory_per_block_optin"] = Value(std::int64_t{entry.shared_limit_optin});
  p["device.shared_memory_per_multiprocessor"] = limit(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  p["device.multiprocessors"] = Value(attribute(MULTIPROCESSOR_COUNT));
  p["device.multiprocessor_unit"] = Value(std::int64_t{multiprocessor_unit(device)});
  p["device.warp_size"] = Value(attribute(cuda::WARP_SIZE));
  p["device.registers_per_block"] = limit(MAX_REGISTERS_PER_BLOCK);
  p["device.registers_per_multiprocessor"] = limit(MAX_REGISTERS_PER_MULTIPROCESSOR);
  p["device.max_threads_per_multiprocessor"] = limit(MAX_THREADS_PER_MULTIPROCESSOR);
  p["device.max_blocks_per_multiprocessor"] = limit(MAX_BLOCKS_PER_MULTIPROCESSOR);
  p["device.l2_bytes"] = Value(attribute(L2_CACHE_SIZE));
  p["device.global_memory_bytes"] = Value(static_cast<std::int64_t>(memory));
  p["device.compute_capability"] = Value(std::int64_t{entry.architecture});
  return entry;
}

}  // namespace

std::vector<DeviceEntry> find_devices(std::string* note) {
  std::vector<DeviceEntry> found;
  const auto none = [&](const std::string& why) {
    if (note) *note = "cuda: " + why;
    return found;
  };
  if (!api().usable()) return none(api().problem());
  if (const CUresult code = api().cuInit(0); code != CUDA_SUCCESS) return none("cuInit: " + api().error_text(code));
  int count = 0, version = 0;
  if (const CUresult code = api().cuDeviceGetCount(&count); code != CUDA_SUCCESS)
    return none("cuDeviceGetCount: " + api().error_text(code));
  api().cuDriverGetVersion(&version);
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    if (api().cuDeviceGet(&device, i) == CUDA_SUCCESS) found.push_back(describe(device, i, version));
  }
  if (found.empty()) return none("the driver has no device (is CUDA_VISIBLE_DEVICES empty?)");
  return found;
}

DeviceEntry find_device(const std::string& id) { return device::entry_of(id, find_devices); }

}  // namespace ergotune::cuda

namespace ergotune::device {

std::vector<DeviceInfo> list_cuda(std::string* note) { return infos_of(cuda::find_devices(note)); }

}  // namespace ergotune::device
