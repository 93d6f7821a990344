// Recognises compiled code given in place of a source.
#pragma once

#include <string_view>

namespace ergotune {

/// True for a CUDA code object (cubin, fatbin) or PTX. Such code is loaded unchanged; macros and compiler options do
/// not apply.
bool is_compiled_code(std::string_view text);

}  // namespace ergotune
