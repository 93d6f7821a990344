// A buffer's contents in a file: raw little-endian elements, or NumPy's .npy.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"

namespace ergotune {

/// The elements in a file, which must be exactly `bytes` of this type. `what` says in messages what they are for:
/// "fills argument "a"". Throws UserError.
std::vector<std::byte> read_array_file(const std::filesystem::path& file, ElementType type, std::size_t bytes,
                                       const std::string& what, const SourcePlace& place = {});

}  // namespace ergotune
