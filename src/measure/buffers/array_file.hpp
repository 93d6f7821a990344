// Reads the contents of a buffer from a file: raw little-endian elements, or NumPy's .npy.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "ergotune/argument.hpp"

namespace ergotune {

/// Returns the elements of a file, which must have this type and exactly `bytes` bytes. `what` describes their purpose
/// in messages: "fills argument "a"". Throws UserError.
std::vector<std::byte> read_array_file(const std::filesystem::path& file, ElementType type, std::size_t bytes,
                                       const std::string& what, const SourcePlace& place = {});

}  // namespace ergotune
