// Finding one's way in JSON text that may be cut off anywhere.
#pragma once

#include <cstddef>
#include <string_view>

namespace ergotune {

inline constexpr std::size_t kNotFound = std::string_view::npos;

/// The position after the string that begins at `at` (its opening quote); kNotFound when it is cut off.
std::size_t after_string(std::string_view text, std::size_t at);
/// The position after the object or list that begins at `at`; kNotFound when it is cut off.
std::size_t after_nested(std::string_view text, std::size_t at);
/// The first position from `at` on that is no white space; the text's size when there is none.
std::size_t skip_space(std::string_view text, std::size_t at);
/// Where the value of a key of the outermost object begins; kNotFound when there is none (yet).
std::size_t top_level_value(std::string_view text, std::string_view key);

}  // namespace ergotune
