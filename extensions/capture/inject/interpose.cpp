#include "capture/inject/interpose.hpp"

namespace ergotune::inject {
namespace {

using Lookup = void*(void*, const char*) noexcept;

Lookup* find_own() noexcept {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"})
    if (void* own = dlvsym(RTLD_NEXT, "dlsym", version)) return reinterpret_cast<Lookup*>(own);
  return nullptr;
}
Lookup *own_lookup = nullptr, *next_lookup = nullptr;

/// Beside the loader's own, the one behind ours, which may be another of our libraries.
void find_lookups() noexcept {
  Lookup* const own = find_own();
  if (own) next_lookup = reinterpret_cast<Lookup*>(own(RTLD_NEXT, "dlsym"));
  if (!next_lookup) next_lookup = own;
  own_lookup = own;
}

/// Null where another is to answer.
void* in_front(void* library, const char* name) noexcept {
  if (!name || !is_hooked(name)) return nullptr;
  void* const own = own_lookup(library, name);
  return own ? function_in_front(name, own) : nullptr;
}

}  // namespace

void* own_dlsym(void* library, const char* name) {
  if (!own_lookup) find_lookups();
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
  if (!own_lookup) find_lookups();
  if (!own_lookup) return nullptr;
  if (library != RTLD_NEXT)
    if (void* function = in_front(library, name)) return function;
  ERGOTUNE_JUMP return next_lookup(library, name);
}
