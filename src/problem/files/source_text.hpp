// Source as text.
#pragma once

#include <string>
#include <string_view>

namespace ergotune {

/// C-like source (C, C++, CUDA, HIP, OpenCL) without comments, blank lines and space at the ends of lines:
/// what is left compiles to the same code. Strings and characters are left alone, raw strings too.
std::string without_comments(std::string_view text);

}  // namespace ergotune
