// Finds the libraries and headers of CUDA toolkits and of Python's NVIDIA packages.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace ergotune::cuda {

/// Returns folders of toolkits (CUDA_HOME, /usr/local/cuda ...), then of the given Python packages ("nvidia/cu13") in
/// the active environment and in the system's; most specific first. The folders need not exist.
std::vector<std::filesystem::path> toolkit_folders(std::span<const char* const> python_packages);

/// Returns the files with these names in those folders, below lib64, lib, and the toolkits' other places.
std::vector<std::string> toolkit_libraries(std::span<const char* const> python_packages,
                                           std::span<const char* const> names);

}  // namespace ergotune::cuda
