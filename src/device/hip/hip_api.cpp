#include "device/hip/hip_api.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/process/environment.hpp"
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

}  // namespace ergotune::hip
