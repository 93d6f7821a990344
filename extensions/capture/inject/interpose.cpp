#include "capture/inject/interpose.hpp"

#include <dlfcn.h>

namespace ergotune::inject {
namespace {

using Lookup = void*(void*, const char*) noexcept;

Lookup* find_own() noexcept {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"})
    if (void* own = dlvsym(RTLD_NEXT, "dlsym", version)) return reinterpret_cast<Lookup*>(own);
  return nullptr;
}
Lookup* own_lookup = nullptr;

/// Null where the loader's own is to answer.
void* in_front(void* library, const char* name) noexcept {
  const std::string_view text(name);
  if (!text.starts_with("cu") && !text.starts_with("nvrtc") && !text.starts_with("hip")) return nullptr;
  void* const own = own_lookup(library, name);
  return own ? function_in_front(text, own) : nullptr;
}

}  // namespace

void* own_dlsym(void* library, const char* name) {
  if (!own_lookup) own_lookup = find_own();
  return own_lookup ? own_lookup(library, name) : nullptr;
}

}  // namespace ergotune::inject

// The loader's takes "next" from the address that it returns to: the call has to be a jump.
#if defined(__clang__)
#define ERGOTUNE_JUMP [[clang::musttail]]
#else
#define ERGOTUNE_JUMP
#endif
extern "C" __attribute__((visibility("default")
#ifndef __clang__
                              ,
                          optimize("O2"), no_sanitize("address", "undefined", "thread")
#endif
                              )) void*
dlsym(void* library, const char* name) noexcept {
  using namespace ergotune::inject;
  if (!own_lookup) own_lookup = find_own();
  if (!own_lookup) return nullptr;
  if (library != RTLD_NEXT)
    if (void* function = in_front(library, name)) return function;
  ERGOTUNE_JUMP return own_lookup(library, name);
}
