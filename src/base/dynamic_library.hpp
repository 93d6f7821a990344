// A shared library opened at run time. Vendor drivers (libcuda, libnvidia-ml, libOpenCL ...) are only ever reached
// this way, so that one binary runs where they are missing.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ergotune {

class DynamicLibrary {
 public:
  /// Opens the first of `names` that loads (RTLD_NOW | RTLD_LOCAL); nullopt when none does. `reason`, when given,
  /// receives the loader's words.
  static std::optional<DynamicLibrary> open(const std::vector<std::string>& names, std::string* reason = nullptr);

  /// True when this process has loaded a library, by whatever way, whose file's name begins so ("libLLVM").
  static bool is_loaded(const char* beginning);

  DynamicLibrary(DynamicLibrary&& other) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;
  ~DynamicLibrary();

  /// Address of a symbol, or nullptr.
  void* symbol(const char* name) const;
  /// Fills a function pointer; false when the symbol is missing.
  template <class F>
  bool load(F*& function, const char* name) const {
    function = reinterpret_cast<F*>(symbol(name));
    return function != nullptr;
  }
  /// The name it was opened by.
  const std::string& name() const { return name_; }

 private:
  DynamicLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace ergotune
