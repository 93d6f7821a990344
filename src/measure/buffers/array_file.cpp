#include "measure/buffers/array_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string_view>

#include "base/npy.hpp"
#include "ergotune/error.hpp"

namespace ergotune {
namespace {

/// Returns the offset of the elements in an .npy file; 0 for a file of raw elements. Changes the position of `in`.
std::size_t data_offset(std::ifstream& in, const std::filesystem::path& file, ElementType type, const std::string& what,
                        const SourcePlace& place) {
  if (file.extension() != ".npy") return 0;
  std::string beginning(64 * 1024, '\0');  // headers written by NumPy have 128 bytes
  in.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(in.gcount()));
  in.clear();
  const auto header = read_npy_header(beginning);
  if (!header)
    throw UserError(
        fmt::format("{}, which {}, is not a complete .npy file (numpy.save writes one)", file.string(), what), place);
  const std::string_view wanted = npy_type_of(to_string(type));
  // byte order does not matter for single bytes
  const bool same = !header->type.empty() && header->type.substr(1) == wanted.substr(1) && header->type[0] != '>';
  if (!same)
    throw UserError(fmt::format("{} has elements of NumPy's type {}, but what it {} is {} ({})", file.string(),
                                header->type, what, to_string(type), wanted),
                    place);
  if (header->fortran_order && header->shape.size() > 1)
    throw UserError(
        fmt::format("{}, which {}, is in Fortran's order; write numpy.ascontiguousarray(...)", file.string(), what),
        place);
  return header->data_offset;
}

}  // namespace

std::vector<std::byte> read_array_file(const std::filesystem::path& file, ElementType type, std::size_t bytes,
                                       const std::string& what, const SourcePlace& place) {
  std::ifstream in(file, std::ios::binary);
  if (!in)
    throw UserError(
        fmt::format("cannot read {}, which {} (paths in a problem file start at its folder)", file.string(), what),
        place);
  const std::size_t offset = data_offset(in, file, type, what, place);
  in.seekg(0, std::ios::end);
  const std::size_t size = static_cast<std::size_t>(in.tellg()) - offset;
  if (size != bytes)
    throw UserError(fmt::format("{} has {} bytes, but what it {} needs {}", file.string(), size, what, bytes), place);
  std::vector<std::byte> contents(bytes);
  in.seekg(static_cast<std::streamoff>(offset));
  in.read(reinterpret_cast<char*>(contents.data()), static_cast<std::streamsize>(bytes));
  return contents;
}

}  // namespace ergotune
