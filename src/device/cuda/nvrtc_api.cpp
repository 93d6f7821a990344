#include "device/cuda/nvrtc_api.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/process/environment.hpp"

namespace ergotune::cuda {
namespace {

namespace fs = std::filesystem;

/// Sub-folders of `parent` whose name starts with `prefix`, newest (largest name) first.
std::vector<fs::path> folders_like(const fs::path& parent, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored))
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::vector<fs::path> python_folders() {
  std::vector<fs::path> pythons;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const auto environment = environment_variable(variable); !environment.empty())
      for (auto& folder : folders_like(fs::path(environment) / "lib", "python3"))
        pythons.push_back(folder / "site-packages");
  for (const fs::path parent : {"/usr/local/lib", "/usr/lib", "/opt/conda/lib"})
    for (auto& folder : folders_like(parent, "python3")) {
      pythons.push_back(folder / "site-packages");
      pythons.push_back(folder / "dist-packages");
    }
  return pythons;
}

}  // namespace

std::vector<fs::path> toolkit_folders(std::span<const char* const> python_packages) {
  std::vector<fs::path> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"})
    if (const auto folder = environment_variable(variable); !folder.empty()) folders.emplace_back(folder);
  folders.emplace_back("/usr/local/cuda");
  for (auto& folder : folders_like("/usr/local", "cuda-")) folders.push_back(folder);
  for (const fs::path base : {"/opt/cuda", "/usr/lib/cuda"}) folders.push_back(base);
  for (const auto& python : python_folders())
    for (const char* package : python_packages) folders.push_back(python / package);
  return folders;
}

std::vector<std::string> toolkit_libraries(std::span<const char* const> python_packages,
                                           std::span<const char* const> names) {
  std::vector<std::string> found;
  for (const auto& folder : toolkit_folders(python_packages))
    for (const char* sub : {"lib64", "lib", "extras/CUPTI/lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"})
      for (const char* name : names) {
        std::error_code ignored;
        if (fs::exists(folder / sub / name, ignored)) found.push_back((folder / sub / name).string());
      }
  return found;
}

}  // namespace ergotune::cuda

namespace ergotune::nvrtc {
namespace {

namespace fs = std::filesystem;

constexpr std::array kNames = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};

// pip packages: nvidia-cuda-nvrtc of CUDA 13 (merged folder) and of CUDA 12
constexpr std::array kPackages = {"nvidia/cu13", "nvidia/cuda_nvrtc"};

std::vector<std::string> usual_names() {
  std::vector<std::string> names(kNames.begin(), kNames.end());
  for (std::string& file : cuda::toolkit_libraries(kPackages, kNames)) names.push_back(std::move(file));
  return names;
}

}  // namespace

const Api& api() {
  static const Api& table =
      *new Api(library_names("ERGOTUNE_NVRTC", usual_names()));  // never closed (driver_table.hpp)
  return table;
}

std::vector<std::string> include_folders() {
  std::vector<fs::path> candidates;
  if (const fs::path library(api().library_name()); library.has_parent_path()) {
    candidates.push_back(library.parent_path().parent_path() / "include");
    // nvidia/cuda_nvrtc/lib -> nvidia/cuda_runtime/include
    candidates.push_back(library.parent_path().parent_path().parent_path() / "cuda_runtime" / "include");
  }
  for (const auto& folder : cuda::toolkit_folders(kPackages)) candidates.push_back(folder / "include");
  for (const auto& folder : candidates) {
    std::error_code ignored;
    if (fs::exists(folder / "cuda_fp16.h", ignored)) return {folder.string()};
  }
  return {};
}

}  // namespace ergotune::nvrtc
