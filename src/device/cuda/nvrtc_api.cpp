#include "device/cuda/nvrtc_api.hpp"

#include <array>
#include <filesystem>

#include "device/cuda/cuda_folders.hpp"

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
