// Text and compiled code of kernel sources.
#pragma once

#include <string>
#include <string_view>

namespace ergotune {

/// With which the source of a Python function begins: lines of what its results depend on.
inline constexpr std::string_view kPythonCallable = "// Python callable\n";

/// True for a CUDA code object (cubin, fatbin) or PTX. Such code is loaded unchanged; macros and compiler options do
/// not apply.
bool is_compiled_code(std::string_view text);

/// Returns C-like source (C, C++, CUDA, HIP, OpenCL) without comments, blank lines and trailing white space; the result
/// compiles to the same code. String, character and raw string literals are unchanged.
std::string without_comments(std::string_view text);

}  // namespace ergotune
