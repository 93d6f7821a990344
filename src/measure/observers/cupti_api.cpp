#include "measure/observers/cupti_api.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "device/cuda/cuda_api.hpp"
#include "device/cuda/nvrtc_api.hpp"
#include "ergotune/error.hpp"

namespace ergotune::cupti {
namespace {

constexpr std::array k12 = {"libcupti.so.12"}, k13 = {"libcupti.so.13"};
// the pip packages nvidia-cuda-cupti (CUDA 13) and nvidia-cuda-cupti-cu12, on which PyTorch depends
constexpr std::array kPackages = {"nvidia/cu13", "nvidia/cuda_cupti"};

/// Returns the major CUDA version of the driver; 0 without a driver.
int driver_major() {
  int version = 0;
  if (!cuda::api().usable() || cuda::api().cuDriverGetVersion(&version) != cuda::CUDA_SUCCESS) return 0;
  return version / 1000;
}

/// Library names in order of preference. A driver rejects a library of another major version, so its own comes first.
/// Without a driver only the host API is used, which works in all versions 12.
std::vector<std::string> usual_names() {
  const bool newest_first = driver_major() >= 13;
  std::vector<std::string> names;
  for (const bool thirteen : {newest_first, !newest_first}) {
    const auto& wanted = thirteen ? k13 : k12;
    for (std::string& file : cuda::toolkit_libraries(kPackages, wanted)) names.push_back(std::move(file));
    names.emplace_back(wanted.front());
  }
  return names;
}

const char* remedy(Result code) {
  switch (code) {
    case kInsufficientPrivileges:
    case kVirtualisedPrivileges:
      return "the driver gives hardware counters to administrators only: run as root, in a container with --cap-add "
             "SYS_ADMIN, or load the driver's module with NVreg_RestrictProfilingToAdminUsers=0 (on a virtual GPU its "
             "host has to allow it); /proc/driver/nvidia/params has RmProfilingAdminOnly: 0 where every user may";
    case kHardwareBusy:
    case kMultipleSubscribers:
    case kOldProfilerInitialised:
      return "another profiler holds the counters (ncu, nsys, DCGM, a second session): end it; `dcgmi profile --pause` "
             "pauses DCGM";
    case kNotSupported:
    case kLegacyNotSupported:
      return "this GPU or driver has no range profiler; it takes a GPU of compute capability 7.5 or later";
    case kVirtualisedNotSupported:
      return "this virtual GPU has no counters";
    case kConfidentialComputing:
      return "confidential computing is on, which forbids counters";
    case kMiningDevice:
      return "mining GPUs have no counters";
    case kMigDevice:
      return "MIG is on: counters need the whole GPU";
    case kSliDevice:
      return "SLI is on, which forbids counters";
    case kWsl:
      return "counters are not to be had under WSL here";
    case kNotCompatible:
      return "this CUPTI belongs to another CUDA than the driver: set ERGOTUNE_CUPTI to the libcupti of the driver's "
             "CUDA";
    case kInvalidChipName:
      return "this CUPTI does not know the chip: a newer one may";
    default:
      return nullptr;
  }
}

}  // namespace

Api::Api() : DriverTable(library_names("ERGOTUNE_CUPTI", usual_names())) {
  const std::filesystem::path file(library_name());
  if (file.has_parent_path()) perfworks_ = DynamicLibrary::open({(file.parent_path() / "libnvperf_host.so").string()});
}

const Api& api() {
  static const Api& table = *new Api;  // never closed, since the library has threads and exit handlers
  return table;
}

std::string version_text(std::uint32_t version) {
  if (version >= 10'000) return fmt::format("{}.{}.{}", version / 10'000, version / 100 % 100, version % 100);
  // versions of CUDA 12.6, 12.8 and 12.9
  return version >= 28   ? "12.9"
         : version >= 26 ? "12.8"
         : version >= 24 ? "12.6"
                         : fmt::format("API version {}", version);
}

std::string error_text(Result code) {
  const char* name = nullptr;
  if (!api().cuptiGetResultString || api().cuptiGetResultString(code, &name) != kSuccess || !name) name = "CUPTI error";
  const char* cure = remedy(code);
  return fmt::format("{} ({}){}{}", name, code, cure ? "; " : "", cure ? cure : "");
}

void check(Result code, const char* what) {
  if (code == kSuccess) return;
  const std::string message = fmt::format("{}: {}", what, error_text(code));
  if (remedy(code)) throw UserError(message);
  throw Error(message);
}

std::string how_to_get_it() {
  return fmt::format(
      "hardware counters need CUPTI of CUDA 12.6 Update 2 or later (the pip packages nvidia-cuda-cupti and "
      "nvidia-cuda-cupti-cu12, or the toolkit's extras/CUPTI), and it cannot be used: {}. Set ERGOTUNE_CUPTI to its "
      "path",
      api().problem());
}

}  // namespace ergotune::cupti
