#include "device/cuda/cuda_platform.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/sysfs.hpp"
#include "device/backend.hpp"
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
  info.pci_address = pci_address_of(api(), device);
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

std::string pci_address_of(const Api& api, CUdevice device) {
  char text[32] = {};
  if (api.cuDeviceGetPCIBusId(text, sizeof text, device) != CUDA_SUCCESS) return {};
  return normalise_pci_address(text);
}

std::vector<DeviceEntry> find_devices(std::string* note) {
  return list_devices(api(), "cuda", "CUDA_VISIBLE_DEVICES", describe, note);
}

DeviceEntry find_device(const std::string& id) { return device::entry_of(id, find_devices); }

namespace {

/// Returns all SMs of a device as a resource that can be split; its type is 0 if the driver does not support it.
CUdevResource whole_of(CUdevice device) {
  CUdevResource whole{};
  if (!api().has_green_contexts() ||
      api().cuDeviceGetDevResource(device, &whole, kResourceMultiprocessors) != CUDA_SUCCESS)
    whole.type = 0;
  return whole;
}

}  // namespace

unsigned multiprocessor_unit(CUdevice device) {
  const CUdevResource whole = whole_of(device);
  if (whole.type != kResourceMultiprocessors) return 0;
  // For a request of one SM, the driver returns its smallest group.
  CUdevResource least{};
  unsigned groups = 1;
  if (api().cuDevSmResourceSplitByCount(&least, &groups, &whole, nullptr, 0, 1) != CUDA_SUCCESS || groups < 1) return 0;
  return least.sm.count;
}

GreenContext::GreenContext(CUdevice device, std::vector<CUdevResource> multiprocessors) {
  CUdevResourceDesc description = nullptr;
  check(api().cuDevResourceGenerateDesc(&description, multiprocessors.data(),
                                        static_cast<unsigned>(multiprocessors.size())),
        DeviceFault::unsupported, "cuDevResourceGenerateDesc");
  check(api().cuGreenCtxCreate(&context_, description, device, kGreenDefaultStream), DeviceFault::unsupported,
        "cuGreenCtxCreate");
}

GreenContext::~GreenContext() { api().cuGreenCtxDestroy(context_); }

CUstream GreenContext::make_stream(int priority) const {
  CUstream stream = nullptr;
  check(api().cuGreenCtxStreamCreate(&stream, context_, kStreamNonBlocking, priority), DeviceFault::unsupported,
        "cuGreenCtxStreamCreate");
  return stream;
}

void SmPartitions::split_sms() {
  if (unit_ > 0) return;
  const unsigned unit = multiprocessor_unit(device_);
  if (unit == 0)
    throw DeviceError(
        DeviceFault::unsupported,
        "SM partitioning is not available here: it needs a driver of CUDA 12.5 or later and a GPU that it takes apart");
  const CUdevResource whole = whole_of(device_);
  unsigned groups = 0;
  check(api().cuDevSmResourceSplitByCount(nullptr, &groups, &whole, nullptr, 0, unit), DeviceFault::unsupported,
        "cuDevSmResourceSplitByCount");
  groups_.resize(groups);
  check(api().cuDevSmResourceSplitByCount(groups_.data(), &groups, &whole, &rest_, 0, unit), DeviceFault::unsupported,
        "cuDevSmResourceSplitByCount");
  groups_.resize(groups);
  total_ = whole.sm.count;
  unit_ = unit;
}

std::shared_ptr<const GreenContext> SmPartitions::part(std::uint32_t first, std::uint32_t count) {
  split_sms();
  const std::uint32_t end = first + count, in_groups = static_cast<std::uint32_t>(groups_.size()) * unit_;
  const bool last = end == total_;
  if (first % unit_ != 0 || first > in_groups || (!last && (end % unit_ != 0 || end > in_groups)))
    throw DeviceError(DeviceFault::launch,
                      fmt::format("no kernel can have SMs {} to {} of {} for itself: this device partitions them in "
                                  "multiples of {}, up to {}; the last branch gets the rest",
                                  first + 1, end, total_, unit_, in_groups));
  std::weak_ptr<const GreenContext>& known = parts_[{first, count}];
  if (auto shared = known.lock()) return shared;
  std::vector<CUdevResource> resources(groups_.begin() + first / unit_,
                                       groups_.begin() + (last ? in_groups : end) / unit_);
  if (last && rest_.sm.count > 0) resources.push_back(rest_);
  auto made = std::make_shared<const GreenContext>(device_, std::move(resources));
  known = made;
  return made;
}

}  // namespace ergotune::cuda

namespace ergotune::device {

std::vector<DeviceInfo> list_cuda(std::string* note) { return infos_of(cuda::find_devices(note)); }

}  // namespace ergotune::device
