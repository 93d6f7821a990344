#include "device/hip/hip_api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/process/environment.hpp"
#include "device/backend.hpp"
#include "device/entries.hpp"
#include "device/hip/hip_names.hpp"

namespace ergotune::hip {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> rocm_folders() {
  std::vector<fs::path> folders;
  if (const auto folder = environment_variable("ROCM_PATH"); !folder.empty()) folders.emplace_back(folder);
  folders.emplace_back("/opt/rocm");
  std::vector<fs::path> versions;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/opt", ignored))
    if (entry.path().filename().string().starts_with("rocm-")) versions.push_back(entry.path());
  std::sort(versions.rbegin(), versions.rend());
  folders.insert(folders.end(), versions.begin(), versions.end());
  return folders;
}

}  // namespace

std::vector<std::string> rocm_libraries(std::span<const char* const> names) {
  std::vector<std::string> files(names.begin(), names.end());
  for (const fs::path& folder : rocm_folders())
    for (const char* name : names) {
      std::error_code ignored;
      if (fs::exists(folder / "lib" / name, ignored)) files.push_back((folder / "lib" / name).string());
    }
  return files;
}

Api::Api(const std::vector<std::string>& libraries) : cuda::Api(libraries, hip_name) {}

const Api& api() {
  static constexpr std::array kNames = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
  static const Api& table =
      *new Api(library_names("ERGOTUNE_HIP", rocm_libraries(kNames)));  // never closed (driver_table.hpp)
  return table;
}

bool driver_is_there() {
  std::error_code ignored;
  // /dev/dxg is the device of the Windows Subsystem for Linux
  return !environment_variable("ERGOTUNE_HIP").empty() || std::filesystem::exists("/dev/kfd", ignored) ||
         std::filesystem::exists("/dev/dxg", ignored);
}

namespace {

/// Offset of gcnArchName in hipDeviceProp_t: for HIP 6 and later, and for earlier versions (ROCm's hip_runtime_api.h).
constexpr std::size_t kArchName = 1160, kOlderArchName = 396, kArchNameBytes = 256;
/// Larger than both structures, which have 1472 and 792 bytes.
constexpr std::size_t kPropertiesBytes = 8192;

std::string target_of(int device) {
  std::vector<char> properties(kPropertiesBytes, '\0');
  std::size_t offset = kArchName;
  int code = -1;
  if (api().hipGetDevicePropertiesR0600) {
    code = api().hipGetDevicePropertiesR0600(properties.data(), device);
  } else if (api().hipGetDeviceProperties) {
    code = api().hipGetDeviceProperties(properties.data(), device);
    offset = kOlderArchName;
  }
  if (code != cuda::CUDA_SUCCESS) return {};
  const char* name = properties.data() + offset;
  std::string target(name, ::strnlen(name, kArchNameBytes));
  return target.starts_with("gfx") ? target : std::string();
}

/// Returns "GPU-" and the sixteen digits of the GPU's unique id, as in ROCR_VISIBLE_DEVICES; empty if it has none.
std::string uuid_of(int device) {
  cuda::CUuuid uuid{};
  if (api().cuDeviceGetUuid(&uuid, device) != cuda::CUDA_SUCCESS) return {};
  std::string digits;
  for (const unsigned char c : uuid.bytes)
    if (std::isxdigit(c)) digits += static_cast<char>(c);
  return digits.size() == sizeof uuid.bytes ? "GPU-" + digits : std::string();
}

/// Adds properties of GCN and CDNA for which HIP has no attribute; their CUs have four SIMDs of 64 lanes (LLVM, User
/// Guide for AMDGPU Backend: vector registers per lane, and allocation units of registers and local data share). For
/// RDNA, the driver computes the occupancy.
void add_register_file(const std::string& architecture, Constants& p) {
  p["device.registers_per_multiprocessor"] = Value(device::kNoLimit);
  if (!architecture.starts_with("gfx9") || architecture.size() != 6) return;
  const bool unified =
      architecture == "gfx90a" || architecture.starts_with("gfx94") || architecture.starts_with("gfx95");
  p["device.registers_per_multiprocessor"] = Value(std::int64_t{4 * 64 * (unified ? 512 : 256)});
  p["device.register_allocation_unit"] = Value(std::int64_t{64 * (unified ? 8 : 4)});
  p["device.shared_allocation_unit"] = Value(std::int64_t{512});
}

/// Returns major and minor version in the manner of CUDA: "gfx90a" -> 90, "gfx1030" -> 103.
std::int64_t capability_of(const std::string& architecture) {
  if (architecture.size() < 6) return 0;
  const std::string digits = architecture.substr(3, architecture.size() - 4);
  const bool sound = std::ranges::all_of(digits, [](unsigned char c) { return std::isdigit(c); });
  return sound && digits.size() < 5 ? std::stoll(digits) : 0;
}

DeviceEntry describe(int device, int number, int version) {
  DeviceEntry entry;
  entry.device = device;
  entry.target = target_of(device);
  DeviceInfo& info = entry.info;
  info.id = fmt::format("hip:{}", number);
  info.backend = "hip";
  char name[256] = {};
  api().cuDeviceGetName(name, sizeof name - 1, device);
  const std::string architecture = architecture_of(entry.target);
  info.name = name[0] ? name : architecture;
  info.uuid = uuid_of(device);
  info.pci_address = cuda::pci_address_of(api(), device);
  info.driver_version = fmt::format("HIP {}.{}.{}", version / 10000000, version / 100000 % 100, version % 100000);
  const auto attribute = [&](DeviceAttribute which) -> std::int64_t {
    int value = 0;
    return api().cuDeviceGetAttribute(&value, which, device) == cuda::CUDA_SUCCESS ? value : 0;
  };
  const auto limit = [&](DeviceAttribute which) {
    const std::int64_t value = attribute(which);
    return Value(value > 0 ? value : device::kNoLimit);
  };
  // Dynamic memory has the same limit as static memory, without opt-in.
  entry.shared_limit = entry.shared_limit_optin = static_cast<int>(limit(MAX_SHARED_MEMORY_PER_BLOCK).as_integer());
  std::size_t memory = 0;
  api().cuDeviceTotalMem(&memory, device);
  Constants& p = info.properties;
  p["device.name"] = info.name;
  p["device.architecture"] = architecture;
  p["device.max_threads_per_block"] = limit(MAX_THREADS_PER_BLOCK);
  p["device.shared_memory_per_block"] = limit(MAX_SHARED_MEMORY_PER_BLOCK);
  p["device.shared_memory_per_multiprocessor"] = limit(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  p["device.multiprocessors"] = Value(attribute(MULTIPROCESSOR_COUNT));
  // Masks refer to compute units; RDNA's multiprocessors are pairs of them.
  const bool units = architecture.starts_with("gfx9") && architecture.size() == 6 && api().hipExtStreamCreateWithCUMask;
  p["device.multiprocessor_unit"] = Value(std::int64_t{units ? 1 : 0});
  p["device.warp_size"] = Value(attribute(WARP_SIZE));
  p["device.registers_per_block"] = limit(MAX_REGISTERS_PER_BLOCK);
  p["device.max_threads_per_multiprocessor"] = limit(MAX_THREADS_PER_MULTIPROCESSOR);
  p["device.max_blocks_per_multiprocessor"] = Value(device::kNoLimit);
  p["device.l2_bytes"] = Value(attribute(L2_CACHE_SIZE));
  p["device.global_memory_bytes"] = Value(static_cast<std::int64_t>(memory));
  p["device.compute_capability"] = Value(capability_of(architecture));
  add_register_file(architecture, p);
  return entry;
}

}  // namespace

std::string architecture_of(const std::string& target) { return target.substr(0, target.find(':')); }

std::vector<DeviceEntry> find_devices(std::string* note) {
  if (driver_is_there())
    return cuda::list_devices(api(), "hip", "HIP_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES", describe, note);
  if (note) *note = "hip: no AMD GPU (the amdgpu driver's /dev/kfd is not there)";
  return {};
}

DeviceEntry find_device(const std::string& id) { return device::entry_of(id, find_devices); }

}  // namespace ergotune::hip

namespace ergotune::device {

std::vector<DeviceInfo> list_hip(std::string* note) { return infos_of(hip::find_devices(note)); }

std::unique_ptr<Device> open_hip(const std::string& id) { return cuda::open_device(hip::api(), hip::find_device(id)); }

}  // namespace ergotune::device

namespace ergotune::hiprtc {
namespace {

/// Names of NVRTC and of hiprtc.
constexpr auto kDictionary = std::to_array<std::pair<std::string_view, const char*>>({
    {"nvrtcGetErrorString", "hiprtcGetErrorString"},
    {"nvrtcVersion", "hiprtcVersion"},
    {"nvrtcCreateProgram", "hiprtcCreateProgram"},
    {"nvrtcDestroyProgram", "hiprtcDestroyProgram"},
    {"nvrtcAddNameExpression", "hiprtcAddNameExpression"},
    {"nvrtcCompileProgram", "hiprtcCompileProgram"},
    {"nvrtcGetLoweredName", "hiprtcGetLoweredName"},
    {"nvrtcGetProgramLogSize", "hiprtcGetProgramLogSize"},
    {"nvrtcGetProgramLog", "hiprtcGetProgramLog"},
    {"nvrtcGetCUBINSize", "hiprtcGetCodeSize"},
    {"nvrtcGetCUBIN", "hiprtcGetCode"},
});

const char* hiprtc_name(const char* symbol) {
  const auto found = std::ranges::find_if(kDictionary, [&](const auto& entry) { return entry.first == symbol; });
  return found == kDictionary.end() ? nullptr : found->second;
}

/// AMD's code object manager, which hiprtc uses and which contains the compiler.
struct Comgr : DriverTable {
  static constexpr std::array kNames = {"libamd_comgr.so.3", "libamd_comgr.so.2"};
  Comgr() : DriverTable(hip::rocm_libraries(kNames)) {}
  EntryPoint<int(std::size_t*)> amd_comgr_get_isa_count{this, "amd_comgr_get_isa_count"};
  EntryPoint<int(std::size_t, const char**)> amd_comgr_get_isa_name{this, "amd_comgr_get_isa_name"};
  EntryPoint<void(std::size_t*, std::size_t*)> amd_comgr_get_version{this, "amd_comgr_get_version"};
};

/// Only used if hiprtc is AMD's, since other implementations have their own compiler.
const Comgr& comgr() {
  static const Comgr& table = *new Comgr;  // never closed (driver_table.hpp)
  return table;
}

}  // namespace

const nvrtc::Api& api() {
  static constexpr std::array kNames = {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libamdhip64.so.6",
                                        "libamdhip64.so.5"};
  static const nvrtc::Api& table = *new nvrtc::Api(library_names("ERGOTUNE_HIPRTC", hip::rocm_libraries(kNames)),
                                                   hiprtc_name);  // never closed (driver_table.hpp)
  return table;
}

std::string version() {
  int major = 0, minor = 0;
  api().nvrtcVersion(&major, &minor);
  std::string text = fmt::format("hiprtc {}.{} | {}", major, minor, nvrtc::library_file(api()));
  if (comgr().usable()) {
    std::size_t comgr_major = 0, comgr_minor = 0;
    comgr().amd_comgr_get_version(&comgr_major, &comgr_minor);
    text += fmt::format(" | comgr {}.{}", comgr_major, comgr_minor);
  }
  return text;
}

std::optional<std::vector<std::string>> architectures() {
  std::size_t count = 0;
  if (!comgr().usable() || comgr().amd_comgr_get_isa_count(&count) != 0) return std::nullopt;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    if (comgr().amd_comgr_get_isa_name(i, &name) != 0 || !name) continue;
    const std::string text(name);  // "amdgcn-amd-amdhsa--gfx90a"
    names.push_back(text.substr(text.rfind('-') + 1));
  }
  return names;
}

}  // namespace ergotune::hiprtc
