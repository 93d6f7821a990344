#include "capture/scalar_type.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

namespace ergotune::capture {
namespace {

template <class T>
T as(std::span<const std::byte> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string real_text(double value, int digits) {
  if (!std::isfinite(value)) return {};
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  std::string result(text);
  // a program may have set a locale with commas
  for (char& c : result)
    if (c == ',') c = '.';
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return result;
}

}  // namespace

std::string_view element_of(std::string_view type) {
  while (!type.empty() && type.back() >= '0' && type.back() <= '9' && !type.ends_with("int8_t")) type.remove_suffix(1);
  constexpr std::pair<std::string_view, std::string_view> kTypes[] = {{"char", "int8"},
                                                                      {"signed char", "int8"},
                                                                      {"uchar", "uint8"},
                                                                      {"unsigned char", "uint8"},
                                                                      {"short", "int16"},
                                                                      {"ushort", "uint16"},
                                                                      {"unsigned short", "uint16"},
                                                                      {"int", "int32"},
                                                                      {"uint", "uint32"},
                                                                      {"unsigned int", "uint32"},
                                                                      {"unsigned", "uint32"},
                                                                      {"long", "int64"},
                                                                      {"ulong", "uint64"},
                                                                      {"unsigned long", "uint64"},
                                                                      {"half", "float16"},
                                                                      {"float", "float32"},
                                                                      {"double", "float64"},
                                                                      {"size_t", "uint64"},
                                                                      {"bool", "uint8"}};
  for (const auto& [name, element] : kTypes)
    if (type == name) return element;
  return {};
}

std::size_t bytes_of(std::string_view element) {
  if (element.ends_with("64")) return 8;
  if (element.ends_with("32")) return 4;
  return element.ends_with("16") ? 2 : 1;
}

std::string number_text(std::string_view element, std::span<const std::byte> bytes) {
  if (bytes.size() != bytes_of(element)) return {};
  if (element == "float64") return real_text(as<double>(bytes), 17);
  if (element == "float32") return real_text(as<float>(bytes), 9);
  if (element == "float16") return {};
  if (element == "uint64") {
    const auto value = as<std::uint64_t>(bytes);
    return value >> 63 ? std::string() : std::to_string(value);
  }
  if (element == "int64") {
    const auto value = as<std::int64_t>(bytes);
    return value == INT64_MIN ? std::string() : std::to_string(value);
  }
  if (element == "uint32") return std::to_string(as<std::uint32_t>(bytes));
  if (element == "int32") return std::to_string(as<std::int32_t>(bytes));
  if (element == "uint16") return std::to_string(as<std::uint16_t>(bytes));
  if (element == "int16") return std::to_string(as<std::int16_t>(bytes));
  if (element == "uint8") return std::to_string(as<std::uint8_t>(bytes));
  if (element == "int8") return std::to_string(as<std::int8_t>(bytes));
  return {};
}

std::string toml_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04X", static_cast<unsigned>(static_cast<unsigned char>(c)));
      result += code;
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace ergotune::capture
