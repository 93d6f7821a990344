// Scans JSON text that may be cut off anywhere.
#pragma once

#include <cstddef>
#include <string_view>

namespace ergotune {

inline constexpr std::size_t kNotFound = std::string_view::npos;

/// The position after the string whose opening quote is at `at`; kNotFound if it is cut off.
std::size_t after_string(std::string_view text, std::size_t at);
/// The position after the object or list that begins at `at`; kNotFound if it is cut off.
std::size_t after_nested(std::string_view text, std::size_t at);
/// The position of the first character from `at` on that is not white space; the text's size if there is none.
std::size_t skip_space(std::string_view text, std::size_t at);
/// The position of the value of a key of the outermost object; kNotFound if the text does not contain it (yet).
std::size_t top_level_value(std::string_view text, std::string_view key);

}  // namespace ergotune
