// What a kernel's source mentions, without understanding it.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace ergotune::capture {

/// Identifiers outside of comments and strings.
std::set<std::string, std::less<>> words_of(std::string_view source);

/// Those of a kernel, of the functions and macros of its source that it uses, and of what stands outside of functions.
/// Of all the source where the kernel's definition is not found.
std::set<std::string, std::less<>> words_of_kernel(std::string_view source, std::string_view kernel);

/// Words after which another block size would be wrong, or not run: barriers, local memory, a size that is demanded.
bool relies_on_block(std::string_view word);
/// Words that ask for the place in a block, or its size.
bool asks_for_block(std::string_view word);

}  // namespace ergotune::capture
