// The identifiers of a kernel's source, and what they show of how it uses its block.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace ergotune::kernel_source {

using Identifiers = std::set<std::string, std::less<>>;

/// Identifiers outside of comments and strings.
Identifiers identifiers_in(std::string_view source);

/// Those of a kernel, of the functions and macros of its source that it uses, and of what stands outside of functions.
/// All of the source where the kernel's definition is not found.
Identifiers identifiers_of_kernel(std::string_view source, std::string_view kernel);

/// A kernel with this identifier fails, or computes something else, with another block size: barriers, local memory, a
/// required size.
bool relies_on_block(std::string_view identifier);
/// Asks for the position in a block, or for its size.
bool asks_for_block(std::string_view identifier);

}  // namespace ergotune::kernel_source
