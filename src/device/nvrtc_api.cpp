#include "device/nvrtc_api.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/environment.hpp"

namespace ergotune::nvrtc {
namespace {

namespace fs = std::filesystem;

constexpr std::array kNames = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};

/// Sub-folders of `parent` whose name starts with `prefix`, newest (largest name) first.
std::vector<fs::path> folders_like(const fs::path& parent, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored))
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
  std::sort(found.rbegin(), found.rend());
  return found;
}

/// Folders of CUDA toolkits and of Python's NVIDIA packages, most specific first.
std::vector<fs::path> toolkit_folders() {
  std::vector<fs::path> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"})
    if (const auto folder = environment_variable(variable); !folder.empty()) folders.emplace_back(folder);
  folders.emplace_back("/usr/local/cuda");
  for (auto& folder : folders_like("/usr/local", "cuda-")) folders.push_back(folder);
  for (const fs::path base : {"/opt/cuda", "/usr/lib/cuda"}) folders.push_back(base);
  // pip packages: nvidia-cuda-nvrtc (12) and the merged nvidia/cu13
  std::vector<fs::path> pythons;
  if (const auto environment = environment_variable("VIRTUAL_ENV"); !environment.empty())
    for (auto& folder : folders_like(fs::path(environment) / "lib", "python3"))
      pythons.push_back(folder / "site-packages");
  for (const fs::path parent : {"/usr/local/lib", "/usr/lib"})
    for (auto& folder : folders_like(parent, "python3")) {
      pythons.push_back(folder / "site-packages");
      pythons.push_back(folder / "dist-packages");
    }
  for (const auto& python : pythons)
    for (const char* package : {"nvidia/cu13", "nvidia/cuda_nvrtc"}) folders.push_back(python / package);
  return folders;
}

std::vector<std::string> usual_names() {
  std::vector<std::string> names(kNames.begin(), kNames.end());
  for (const auto& folder : toolkit_folders())
    for (const char* sub : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"})
      for (const char* name : kNames) {
        std::error_code ignored;
        if (fs::exists(folder / sub / name, ignored)) names.push_back((folder / sub / name).string());
      }
  return names;
}

}  // namespace

Api::Api() : DriverTable(library_names("ERGOTUNE_NVRTC", usual_names())) {}

const Api& api() {
  static const Api table;
  return table;
}

std::vector<std::string> include_folders() {
  std::vector<fs::path> candidates;
  if (const fs::path library(api().library_name()); library.has_parent_path()) {
    candidates.push_back(library.parent_path().parent_path() / "include");
    // nvidia/cuda_nvrtc/lib -> nvidia/cuda_runtime/include
    candidates.push_back(library.parent_path().parent_path().parent_path() / "cuda_runtime" / "include");
  }
  for (const auto& folder : toolkit_folders()) candidates.push_back(folder / "include");
  for (const auto& folder : candidates) {
    std::error_code ignored;
    if (fs::exists(folder / "cuda_fp16.h", ignored)) return {folder.string()};
  }
  return {};
}

}  // namespace ergotune::nvrtc
