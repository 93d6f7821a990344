#include "device/hip/rocm_folders.hpp"

#include <algorithm>
#include <filesystem>

#include "base/process/environment.hpp"

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

}  // namespace ergotune::hip
