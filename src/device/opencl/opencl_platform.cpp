#include "device/opencl/opencl_platform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.hpp"
#include "device/backend.hpp"
#include "device/entries.hpp"

namespace ergotune::opencl {
namespace {

std::string platform_text(cl_platform_id platform, cl_uint name) {
  std::size_t bytes = 0;
  if (api().clGetPlatformInfo(platform, name, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return {};
  std::string text(bytes, '\0');
  api().clGetPlatformInfo(platform, name, bytes, text.data(), nullptr);
  return text.c_str();
}

std::string device_text(cl_device_id device, cl_uint name) {
  std::size_t bytes = 0;
  if (api().clGetDeviceInfo(device, name, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return {};
  std::string text(bytes, '\0');
  api().clGetDeviceInfo(device, name, bytes, text.data(), nullptr);
  return text.c_str();
}

template <class T>
std::optional<T> device_value(cl_device_id device, cl_uint name) {
  T value{};
  if (api().clGetDeviceInfo(device, name, sizeof value, &value, nullptr) != CL_SUCCESS) return std::nullopt;
  return value;
}

bool has_extension(const std::string& extensions, const char* name) {
  return (" " + extensions + " ").find(fmt::format(" {} ", name)) != std::string::npos;
}

std::string uuid_of(cl_device_id device, const std::string& extensions) {
  if (!has_extension(extensions, "cl_khr_device_uuid")) return {};
  unsigned char bytes[16] = {};
  if (api().clGetDeviceInfo(device, CL_DEVICE_UUID_KHR, sizeof bytes, bytes, nullptr) != CL_SUCCESS) return {};
  return device::gpu_uuid(bytes);
}

std::string pci_address_of(cl_device_id device, const std::string& extensions) {
  struct PciBusInfo {
    cl_uint domain, bus, device, function;
  };
  const auto format = [](const PciBusInfo& at) {
    return fmt::format("{:08x}:{:02x}:{:02x}.{:x}", at.domain, at.bus, at.device, at.function);
  };
  if (has_extension(extensions, "cl_khr_pci_bus_info"))
    if (const auto at = device_value<PciBusInfo>(device, CL_DEVICE_PCI_BUS_INFO_KHR)) return format(*at);
  if (has_extension(extensions, "cl_nv_device_attribute_query")) {
    const auto bus = device_value<cl_uint>(device, CL_DEVICE_PCI_BUS_ID_NV);
    const auto slot = device_value<cl_uint>(device, CL_DEVICE_PCI_SLOT_ID_NV);
    if (bus && slot)
      return format(
          {device_value<cl_uint>(device, CL_DEVICE_PCI_DOMAIN_ID_NV).value_or(0), *bus, *slot >> 3, *slot & 7});
  }
  if (has_extension(extensions, "cl_amd_device_attribute_query")) {
    // cl_device_topology_amd: a type (1 = PCIe), 17 unused bytes, then bus, device, function
    struct Topology {
      cl_uint type;
      unsigned char unused[17], bus, device, function;
    };
    static_assert(sizeof(Topology) == 24);
    const auto at = device_value<Topology>(device, CL_DEVICE_TOPOLOGY_AMD);
    if (at && at->type == 1) return format({0, at->bus, at->device, at->function});
  }
  return {};
}

/// True if the device can be partitioned by numbers of compute units.
bool is_divisible(cl_device_id device) {
  cl_properties kinds[16] = {};
  if (!api().clCreateSubDevices || !api().clReleaseDevice ||
      api().clGetDeviceInfo(device, CL_DEVICE_PARTITION_PROPERTIES, sizeof kinds, kinds, nullptr) != CL_SUCCESS)
    return false;
  return std::find(std::begin(kinds), std::end(kinds), cl_properties{CL_DEVICE_PARTITION_BY_COUNTS}) != std::end(kinds);
}

DeviceInfo describe(cl_device_id device, int platform_number, int device_number) {
  DeviceInfo info;
  info.id = fmt::format("opencl:{}:{}", platform_number, device_number);
  info.backend = "opencl";
  info.name = trimmed(device_text(device, CL_DEVICE_NAME));
  const std::string extensions = device_text(device, CL_DEVICE_EXTENSIONS);
  if (has_extension(extensions, "cl_amd_device_attribute_query")) {
    const std::string gpu(trimmed(device_text(device, CL_DEVICE_BOARD_NAME_AMD)));  // CL_DEVICE_NAME is just "gfx90a"
    if (!gpu.empty()) info.name = gpu;
  }
  info.driver_version = device_text(device, CL_DRIVER_VERSION);
  info.is_cpu = (device_value<cl_bitfield>(device, CL_DEVICE_TYPE).value_or(0) & CL_DEVICE_TYPE_CPU) != 0;
  info.uuid = info.is_cpu ? "" : uuid_of(device, extensions);
  info.pci_address = info.is_cpu ? "" : pci_address_of(device, extensions);

  const auto integer = [](auto value) { return Value(static_cast<std::int64_t>(value)); };
  const auto shared = device_value<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE).value_or(0);
  const auto threads = device_value<std::size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE).value_or(1);
  const auto warp_nv = device_value<cl_uint>(device, CL_DEVICE_WARP_SIZE_NV);
  const auto wave_amd = device_value<cl_uint>(device, CL_DEVICE_WAVEFRONT_WIDTH_AMD);
  const auto major = device_value<cl_uint>(device, CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV);
  const auto minor = device_value<cl_uint>(device, CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV);
  const auto registers = device_value<cl_uint>(device, CL_DEVICE_REGISTERS_PER_BLOCK_NV);
  Constants& p = info.properties;
  p["device.name"] = info.name;
  p["device.max_threads_per_block"] = integer(threads);
  p["device.shared_memory_per_block"] = integer(shared);
  p["device.shared_memory_per_multiprocessor"] = integer(shared);
  p["device.multiprocessors"] = integer(device_value<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS).value_or(1));
  p["device.multiprocessor_unit"] = integer(is_divisible(device) ? 1 : 0);
  p["device.warp_size"] = integer(warp_nv ? *warp_nv : wave_amd ? *wave_amd : info.is_cpu ? 1 : 32);
  p["device.registers_per_block"] = integer(registers ? *registers : device::kNoLimit);
  p["device.registers_per_multiprocessor"] = integer(registers ? *registers : device::kNoLimit);
  p["device.max_threads_per_multiprocessor"] = integer(device::kNoLimit);
  p["device.max_blocks_per_multiprocessor"] = integer(device::kNoLimit);
  p["device.l2_bytes"] = integer(device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE).value_or(0));
  p["device.global_memory_bytes"] = integer(device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE).value_or(0));
  p["device.compute_capability"] = integer(major && minor ? *major * 10 + *minor : 0);
  return info;
}

}  // namespace

std::vector<DeviceEntry> find_devices(std::string* note) {
  std::vector<DeviceEntry> found;
  const auto none = [&](const std::string& why) {
    if (note) *note = "opencl: " + why;
    return found;
  };
  // Debian's comgr and PoCL share libLLVM, and registering the same options in it twice ends the process.
  if (DynamicLibrary::is_loaded("libamd_comgr") && DynamicLibrary::is_loaded("libLLVM") &&
      !DynamicLibrary::is_loaded("libpocl"))
    return none("AMD's compiler is in this process, and no other of LLVM may be beside it");
  // CUDA's OpenCL loader modifies this variable, so that processes started later would inherit only the first name.
  constexpr const char* kLibraries = "OCL_ICD_FILENAMES";
  const char* set = std::getenv(kLibraries);
  const std::optional<std::string> libraries = set ? std::optional<std::string>(set) : std::nullopt;
  if (!api().usable()) return none(api().problem());
  cl_uint platform_count = 0;
  const cl_int code = api().clGetPlatformIDs(0, nullptr, &platform_count);
  if (libraries) ::setenv(kLibraries, libraries->c_str(), 1);
  if (code != CL_SUCCESS || platform_count == 0)
    return none("no platform is installed (no ICD in /etc/OpenCL/vendors)");
  std::vector<cl_platform_id> platforms(platform_count);
  api().clGetPlatformIDs(platform_count, platforms.data(), nullptr);
  for (cl_uint p = 0; p < platform_count; ++p) {
    cl_uint device_count = 0;
    if (api().clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 0, nullptr, &device_count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> devices(device_count);
    api().clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, device_count, devices.data(), nullptr);
    for (cl_uint d = 0; d < device_count; ++d) {
      DeviceEntry entry;
      entry.info = describe(devices[d], static_cast<int>(p), static_cast<int>(d));
      entry.platform = platforms[p];
      entry.device = devices[d];
      entry.platform_name = platform_text(platforms[p], CL_PLATFORM_NAME);
      entry.versions = fmt::format("{} | {} | {}", platform_text(platforms[p], CL_PLATFORM_VERSION),
                                   device_text(devices[d], CL_DEVICE_VERSION), entry.info.driver_version);
      found.push_back(std::move(entry));
    }
  }
  if (found.empty()) return none("its platforms have no device");
  std::ranges::stable_sort(found,
                           [](const DeviceEntry& a, const DeviceEntry& b) { return a.info.is_cpu < b.info.is_cpu; });
  return found;
}

DeviceEntry find_device(const std::string& id) { return device::entry_of(id, find_devices); }

void check(cl_int code, DeviceFault fault, const char* what) {
  if (code == CL_SUCCESS) return;
  if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE)
    fault = DeviceFault::out_of_memory;
  throw DeviceError(fault, fmt::format("{}: {}", what, error_name(code)), code);
}

SubDevice::SubDevice(const DeviceEntry& entry, cl_uint first, cl_uint count) {
  const std::int64_t total = entry.info.properties.at("device.multiprocessors").as_integer();
  if (entry.info.properties.at("device.multiprocessor_unit").as_integer() == 0)
    throw DeviceError(DeviceFault::unsupported,
                      "kernels cannot have compute units for themselves: this device is not taken apart");
  if (std::int64_t{first} + count > total)
    throw DeviceError(DeviceFault::launch,
                      fmt::format("no kernel can have compute units {} to {} for itself: this device has {}", first + 1,
                                  std::int64_t{first} + count, total));
  std::vector<cl_properties> wanted{CL_DEVICE_PARTITION_BY_COUNTS};
  if (first > 0) wanted.push_back(first);
  wanted.insert(wanted.end(), {static_cast<cl_properties>(count), 0, 0});
  cl_device_id parts[2] = {};
  check(api().clCreateSubDevices(entry.device, wanted.data(), first > 0 ? 2 : 1, parts, nullptr),
        DeviceFault::unsupported, "clCreateSubDevices");
  device_ = parts[first > 0 ? 1 : 0];
  if (first > 0) api().clReleaseDevice(parts[0]);
}

Context::Context(const DeviceEntry& entry) {
  const cl_properties properties[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_properties>(entry.platform), 0};
  cl_int code = CL_SUCCESS;
  context_ = api().clCreateContext(properties, 1, &entry.device, nullptr, nullptr, &code);
  check(code, DeviceFault::runtime, "clCreateContext");
}

Context::~Context() {
  if (owned_) api().clReleaseContext(context_);
}

}  // namespace ergotune::opencl

namespace ergotune::device {

std::vector<DeviceInfo> list_opencl(std::string* note) { return infos_of(opencl::find_devices(note)); }

}  // namespace ergotune::device
