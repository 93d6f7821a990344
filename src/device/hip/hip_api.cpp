#include "device/hip/hip_api.hpp"

#include <array>
#include <filesystem>

#include "base/process/environment.hpp"
#include "device/hip/hip_names.hpp"
#include "device/hip/rocm_folders.hpp"

namespace ergotune::hip {
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
