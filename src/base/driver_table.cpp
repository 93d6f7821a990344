#include "base/driver_table.hpp"

#include <dlfcn.h>
#include <link.h>

#include <string_view>
#include <utility>

#include "base/process/environment.hpp"

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

std::vector<std::string> library_names(const char* variable, std::vector<std::string> usual) {
  if (auto name = environment_variable(variable); !name.empty()) return {std::move(name)};
  return usual;
}

std::string DriverTable::problem() const {
  if (!library_) return reason_;
  if (missing_.empty()) return {};
  std::string text = library_->name() + " lacks ";
  for (std::size_t i = 0; i < missing_.size(); ++i) text += (i ? ", " : "") + missing_[i];
  return text;
}

}  // namespace ergotune
