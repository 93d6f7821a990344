// The expected outputs of all configurations.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "measure/buffers/problem_buffers.hpp"

namespace ergotune {

struct Problem;

/// Contents by argument name.
using ExpectedOutputs = std::map<std::string, std::vector<std::byte>>;

/// Determines the expected outputs from a reference kernel, a host function or files; returns nullopt if they come from
/// the first correct configuration, or if none are needed. `configuration`: parameters for the reference; null: the
/// defaults. Throws UserError if the reference fails.
std::optional<ExpectedOutputs> expected_outputs(const Problem& problem, Device& device, const ProblemBuffers& buffers,
                                                const Configuration* configuration = nullptr);

/// Writes expected outputs to a file for later runners. The file is complete or does not exist.
void save_outputs(const ExpectedOutputs& outputs, const std::filesystem::path& file);
/// Returns nullopt if the file is missing, truncated or corrupt.
std::optional<ExpectedOutputs> load_outputs(const std::filesystem::path& file);

}  // namespace ergotune
