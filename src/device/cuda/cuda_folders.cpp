#include "device/cuda/cuda_folders.hpp"

#include <algorithm>

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
