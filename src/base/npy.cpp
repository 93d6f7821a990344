#include "base/npy.hpp"

#include <utility>

namespace ergotune {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

/// Returns the text after 'key': in the header's Python dictionary; empty if there is none.
std::string_view behind(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = header.find_first_not_of(" ", at + key.size());
  return begin == std::string_view::npos ? std::string_view() : header.substr(begin);
}

/// Parses "(3, 4)", "(3,)", "()".
bool read_shape(std::string_view text, std::vector<std::size_t>& shape) {
  if (!text.starts_with('(')) return false;
  text.remove_prefix(1);
  while (!text.empty()) {
    const char c = text.front();
    if (c == ')') return true;
    if (c == ' ' || c == ',') {
      text.remove_prefix(1);
      continue;
    }
    std::size_t extent = 0, digits = 0;
    for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
      if (digits == 18) return false;
      extent = extent * 10 + static_cast<std::size_t>(text[digits] - '0');
    }
    if (digits == 0) return false;
    shape.push_back(extent);
    text.remove_prefix(digits);
  }
  return false;
}

}  // namespace

std::optional<NpyHeader> read_npy_header(std::string_view bytes) {
  if (!bytes.starts_with(kMagic) || bytes.size() < 12) return std::nullopt;
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])); };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3) return std::nullopt;
  std::size_t begin = 10, length = byte(8) | byte(9) << 8;
  if (version > 1) {
    begin = 12;
    length |= byte(10) << 16 | byte(11) << 24;
  }
  if (length > bytes.size() - begin) return std::nullopt;
  const std::string_view text = bytes.substr(begin, length);
  NpyHeader header;
  header.data_offset = begin + length;
  const std::string_view type = behind(text, "'descr':"), order = behind(text, "'fortran_order':");
  if (type.size() < 2 || type.front() != '\'') return std::nullopt;
  const std::size_t end = type.find('\'', 1);
  if (end == std::string_view::npos) return std::nullopt;
  header.type = type.substr(1, end - 1);
  if (!order.starts_with("True") && !order.starts_with("False")) return std::nullopt;
  header.fortran_order = order.starts_with("True");
  if (!read_shape(behind(text, "'shape':"), header.shape)) return std::nullopt;
  return header;
}

std::string npy_header(std::string_view type, std::size_t count) {
  std::string text =
      "{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': (" + std::to_string(count) + ",), }";
  constexpr std::size_t kBefore = 10;
  text.append(63 - (kBefore + text.size()) % 64, ' ');
  text += '\n';
  std::string header(kMagic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

std::string_view npy_type_of(std::string_view element_type) {
  constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {"int8", "|i1"},  {"uint8", "|u1"},  {"int16", "<i2"},   {"uint16", "<u2"},  {"int32", "<i4"},  {"uint32", "<u4"},
      {"int64", "<i8"}, {"uint64", "<u8"}, {"float16", "<f2"}, {"float32", "<f4"}, {"float64", "<f8"}};
  for (const auto& [ours, numpys] : kTypes)
    if (ours == element_type) return numpys;
  return {};
}

}  // namespace ergotune
