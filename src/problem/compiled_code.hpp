// Code that is compiled already, where a source is expected.
#pragma once

#include <string_view>

namespace ergotune {

/// A CUDA code object (cubin, fatbin) or PTX: it is loaded as it is, and no macro or option changes it.
bool is_compiled_code(std::string_view text);

}  // namespace ergotune
