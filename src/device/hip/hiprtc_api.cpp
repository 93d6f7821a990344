#include "device/hip/hiprtc_api.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "device/hip/hip_api.hpp"

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
  const auto found =
      std::find_if(kDictionary.begin(), kDictionary.end(), [&](const auto& entry) { return entry.first == symbol; });
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

/// Returns the path of the library, with its full version in the file name.
std::string file() {
  Dl_info info{};
  void* function = api().find("nvrtcCompileProgram");
  if (!function || ::dladdr(function, &info) == 0 || !info.dli_fname) return api().library_name();
  std::error_code error;
  const auto path = std::filesystem::canonical(info.dli_fname, error);
  return error ? info.dli_fname : path.string();
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
  std::string text = fmt::format("hiprtc {}.{} | {}", major, minor, file());
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
