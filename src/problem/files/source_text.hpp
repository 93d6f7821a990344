// Normalisation of source text.
#pragma once

#include <string>
#include <string_view>

namespace ergotune {

/// Returns C-like source (C, C++, CUDA, HIP, OpenCL) without comments, blank lines and trailing white space; the result
/// compiles to the same code. String, character and raw string literals are unchanged.
std::string without_comments(std::string_view text);

}  // namespace ergotune
