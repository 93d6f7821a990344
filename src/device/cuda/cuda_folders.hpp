// Where CUDA toolkits and Python's NVIDIA packages put their libraries and headers.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace ergotune::cuda {

/// Folders of toolkits (CUDA_HOME, /usr/local/cuda ...), then of Python's packages of these names ("nvidia/cu13") in
/// the environment that is active and in the system's; most specific first. They need not exist.
std::vector<std::filesystem::path> toolkit_folders(std::span<const char* const> python_packages);

/// The files of these names that lie in those folders, below lib64, lib, and the toolkits' other places.
std::vector<std::string> toolkit_libraries(std::span<const char* const> python_packages,
                                           std::span<const char* const> names);

}  // namespace ergotune::cuda
