#include "base/dynamic_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <string_view>
#include <utility>

namespace ergotune {

std::optional<DynamicLibrary> DynamicLibrary::open(const std::vector<std::string>& names, std::string* reason) {
  std::string message;
  for (const auto& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return DynamicLibrary(handle, name);
    if (!message.empty()) message += "; ";
    const char* error = dlerror();
    message += error ? error : name + ": cannot be opened";
  }
  if (reason) *reason = message;
  return std::nullopt;
}

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(name_, other.name_);
  return *this;
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_) dlclose(handle_);
}

bool DynamicLibrary::is_loaded(const char* beginning) {
  const auto look = [](dl_phdr_info* info, std::size_t, void* wanted) {
    const std::string_view path = info->dlpi_name ? info->dlpi_name : "";
    return static_cast<int>(path.substr(path.rfind('/') + 1).starts_with(static_cast<const char*>(wanted)));
  };
  return ::dl_iterate_phdr(look, const_cast<char*>(beginning)) != 0;
}

void* DynamicLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace ergotune
