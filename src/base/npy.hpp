// NumPy's .npy files (format 1.0 to 3.0): a header with type and shape, followed by the raw elements.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

struct NpyHeader {
  /// Type of the elements in NumPy's notation: "<f4", "<i8", "|u1".
  std::string type;
  bool fortran_order = false;
  std::vector<std::size_t> shape;
  /// Offset of the elements.
  std::size_t data_offset = 0;
};

/// Parses the header of a file; returns nullopt if it is invalid or incomplete. Does not throw.
std::optional<NpyHeader> read_npy_header(std::string_view bytes);

/// Returns the header of an array with `count` elements in one dimension, padded to a multiple of 64 bytes.
std::string npy_header(std::string_view type, std::size_t count);

/// Returns NumPy's name of a problem file's element type: "float32" -> "<f4"; empty for an unknown type.
std::string_view npy_type_of(std::string_view element_type);

}  // namespace ergotune
