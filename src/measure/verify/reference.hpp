// The outputs that are expected of every configuration.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/problem.hpp"
#include "measure/buffers/problem_buffers.hpp"

namespace ergotune {

/// Expected contents by argument name.
using ExpectedOutputs = std::map<std::string, std::vector<std::byte>>;

/// Works out the expected outputs where the problem tells how (reference kernel, host function, files);
/// nullopt where they come from the first correct configuration or none are wanted. Throws UserError when the
/// reference fails. The reference runs with the defaults where no configuration is given.
std::optional<ExpectedOutputs> expected_outputs(const Problem& problem, Device& device, const ProblemBuffers& buffers,
                                                const Configuration* configuration = nullptr);

/// Expected outputs on disk, for runners that come later; written whole or not at all.
void save_outputs(const ExpectedOutputs& outputs, const std::filesystem::path& file);
/// nullopt when the file is missing, cut short, or damaged.
std::optional<ExpectedOutputs> load_outputs(const std::filesystem::path& file);

}  // namespace ergotune
