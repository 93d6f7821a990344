// A shared library opened at run time. Vendor drivers (libcuda, libnvidia-ml, libOpenCL ...) are only used in this way,
// so that one binary also runs on machines without them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ergotune {

class DynamicLibrary {
 public:
  /// Opens the first of `names` that can be loaded (RTLD_NOW | RTLD_LOCAL); returns nullopt if none can. `reason`, if
  /// given, receives the loader's message.
  static std::optional<DynamicLibrary> open(const std::vector<std::string>& names, std::string* reason = nullptr);

  /// True if this process has loaded, in any way, a library whose file name begins with `beginning` ("libLLVM").
  static bool is_loaded(const char* beginning);

  DynamicLibrary(DynamicLibrary&& other) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;
  ~DynamicLibrary();

  /// Returns the address of a symbol, or nullptr.
  void* symbol(const char* name) const;
  /// Sets a function pointer; returns false if the symbol is missing.
  template <class F>
  bool load(F*& function, const char* name) const {
    function = reinterpret_cast<F*>(symbol(name));
    return function != nullptr;
  }
  /// The name with which it was opened.
  const std::string& name() const { return name_; }

 private:
  DynamicLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace ergotune
