// The loader's dlsym() behind ours (LD_PRELOAD): drivers are opened with dlopen(), and what a program looks up in them
// by name can be a function of ours.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace ergotune::inject {

/// The loader's own.
void* own_dlsym(void* library, const char* name);

/// Whether this library has a function of that name for programs.
bool is_hooked(std::string_view name) noexcept;
/// What stands in front of `own`, which a program has looked up by this name; `own` itself where nothing does. Each
/// library says.
void* function_in_front(std::string_view name, void* own) noexcept;

/// The library that the program has loaded from a file whose name begins with `name`; null where there is none. A
/// package or a plugin may bring one of its own, which the loader's search does not find.
inline void* loaded_library(std::string_view name) {
  std::pair<std::string_view, std::string> search{name, ""};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& [wanted, file] = *static_cast<std::pair<std::string_view, std::string>*>(data);
        const char* slash = std::strrchr(info->dlpi_name, '/');
        if (!slash || !std::string_view(slash + 1).starts_with(wanted)) return 0;
        file = info->dlpi_name;
        return 1;
      },
      &search);
  return search.second.empty() ? nullptr : dlopen(search.second.c_str(), RTLD_LAZY | RTLD_NOLOAD);
}

}  // namespace ergotune::inject
