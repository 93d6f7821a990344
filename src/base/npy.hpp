// NumPy's .npy files (format 1.0 to 3.0): a header that says type and shape, then the raw elements.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

struct NpyHeader {
  /// NumPy's name of the element's type: "<f4", "<i8", "|u1".
  std::string type;
  bool fortran_order = false;
  std::vector<std::size_t> shape;
  /// Where the elements begin.
  std::size_t data_offset = 0;
};

/// The header at the beginning of a file; nullopt for what is none, or is cut off. Never throws, whatever the bytes.
std::optional<NpyHeader> read_npy_header(std::string_view bytes);

/// The header of `count` elements in one dimension, with which the elements begin at a multiple of 64 bytes.
std::string npy_header(std::string_view type, std::size_t count);

/// What NumPy calls an element type of a problem file: "float32" -> "<f4"; empty for what is none.
std::string_view npy_type_of(std::string_view element_type);

}  // namespace ergotune
