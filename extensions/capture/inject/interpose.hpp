// The loader's dlsym() behind ours (LD_PRELOAD): drivers are opened with dlopen(), and what a program looks up in them
// by name can be a function of ours.
#pragma once

#include <string_view>

namespace ergotune::inject {

/// The loader's own.
void* own_dlsym(void* library, const char* name);

/// What stands in front of `own`, which a program has looked up by this name; `own` itself where nothing does. Each
/// library says.
void* function_in_front(std::string_view name, void* own) noexcept;

}  // namespace ergotune::inject
