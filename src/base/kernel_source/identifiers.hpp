// Identifiers of a kernel's source, and what they reveal about its use of the thread block.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace ergotune::kernel_source {

using Identifiers = std::set<std::string, std::less<>>;

/// Returns the identifiers outside of comments and strings.
Identifiers identifiers_in(std::string_view source);

/// Returns the identifiers of a kernel, of the functions and macros that it uses, and of the text outside of functions;
/// of the complete source if the kernel's definition is not found.
Identifiers identifiers_of_kernel(std::string_view source, std::string_view kernel);

/// True if a kernel with this identifier may fail or compute something else with another block size: barriers, local
/// memory, a required size.
bool relies_on_block(std::string_view identifier);
/// True if the identifier yields the position in a block or the size of a block.
bool asks_for_block(std::string_view identifier);

}  // namespace ergotune::kernel_source
