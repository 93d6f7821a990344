#include "capture/inject/interpose.hpp"

#include <link.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

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

/// Our own function of that name; null where we have none.
void* exported(const char* name) noexcept {
  static Dl_info ours{};
  static void* const self =
      dladdr(reinterpret_cast<void*>(find_lookups), &ours) ? dlopen(ours.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  void* const found = self ? own_dlsym(self, name) : nullptr;
  Dl_info info{};
  return found && dladdr(found, &info) && info.dli_fbase == ours.dli_fbase ? found : nullptr;
}

/// Null where another is to answer.
void* in_front(void* library, const char* name) noexcept {
  constexpr std::string_view kPrefixes[] = {"cu", "cl", "nvrtc", "hip", "__hip"};
  const auto begins = [&](std::string_view prefix) { return std::string_view(name).starts_with(prefix); };
  if (!name || std::none_of(std::begin(kPrefixes), std::end(kPrefixes), begins)) return nullptr;
  void* const own = own_lookup(library, name);
  void* const function = own ? function_in_front(name, own) : nullptr;
  return function == own ? nullptr : function;
}

}  // namespace

void* own_dlsym(void* library, const char* name) {
  if (!own_lookup) find_lookups();
  return own_lookup ? own_lookup(library, name) : nullptr;
}

void* function_in_front(const char* name, void* own) noexcept {
  try {
    void* const ours = exported(name);
    return ours && own != ours && stands_in_front(name) && own_function(name).is(own) ? ours : own;
  } catch (...) {
    return own;
  }
}

void* loaded_library(std::string_view name) {
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

void* OwnFunction::address() {
  void* found = address_;
  if (!found) address_ = found = find_function(name_.c_str());
  return found;
}

OwnFunction& own_function(const char* name) {
  static std::mutex mutex;
  static auto* const all = new std::map<std::string, std::unique_ptr<OwnFunction>, std::less<>>;
  const std::lock_guard lock(mutex);
  auto found = all->find(name);
  if (found == all->end()) found = all->emplace(name, std::make_unique<OwnFunction>(name)).first;
  return *found->second;
}

}  // namespace ergotune::inject

// The loader's takes "next" from the address that it returns to: the call has to be a jump. clang makes none in a
// function that is noexcept, as the header declares dlsym: this one has another name in C++.
#if defined(__clang__)
#define ERGOTUNE_JUMP [[clang::musttail]]
#else
#define ERGOTUNE_JUMP
#endif
extern "C" void* ergotune_dlsym(void* library, const char* name) __asm__("dlsym");
extern "C" __attribute__((visibility("default")
#ifndef __clang__
                              ,
                          optimize("O2"), no_sanitize("address", "undefined", "thread")
#endif
                              )) void*
ergotune_dlsym(void* library, const char* name) {
  using namespace ergotune::inject;
  if (!own_lookup) find_lookups();
  if (!own_lookup) return nullptr;
  if (library != RTLD_NEXT)
    if (void* function = in_front(library, name)) return function;
  ERGOTUNE_JUMP return next_lookup(library, name);
}
