// A vendor library's entry points as one table: each function is named once, with its type, and looked up once when the
// table is created. Required and optional functions are distinguished, so that older drivers can be used as far as
// possible.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ergotune {

/// A shared library opened at run time. Vendor drivers (libcuda, libnvidia-ml, libOpenCL ...) are only used in this
/// way, so that one binary also runs on machines without them.
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

/// Returns the file named by an environment variable, else the default names.
std::vector<std::string> library_names(const char* variable, std::vector<std::string> usual);

/// Base of a table. The members of the derived struct are EntryPoint objects, which take `this` and their symbol's
/// name. A process never destroys the tables of its drivers: a driver has threads, whose code would be unloaded, and
/// data structures that are only found through an open library.
class DriverTable {
 public:
  /// True if the library is open and no required entry point is missing.
  bool usable() const { return library_.has_value() && missing_.empty(); }
  /// Returns why it is not usable, as one line for a message.
  std::string problem() const;
  /// The file that was opened; empty if none was.
  std::string library_name() const { return library_ ? library_->name() : std::string(); }

  void* find(const char* symbol) const {
    const char* own = own_name(symbol);
    return library_ && own ? library_->symbol(own) : nullptr;
  }
  void note_missing(const char* symbol) {
    const char* own = own_name(symbol);
    missing_.emplace_back(own ? own : symbol);
  }

  DriverTable(const DriverTable&) = delete;
  DriverTable& operator=(const DriverTable&) = delete;

 protected:
  /// For libraries that have the same functions under different names: returns the library's name for the table's
  /// `symbol`; nullptr if it has no such function.
  using Dictionary = const char* (*)(const char* symbol);
  explicit DriverTable(const std::vector<std::string>& names, Dictionary dictionary = nullptr)
      : library_(DynamicLibrary::open(names, &reason_)), dictionary_(dictionary) {}
  ~DriverTable() = default;

 private:
  const char* own_name(const char* symbol) const { return dictionary_ ? dictionary_(symbol) : symbol; }

  std::string reason_;
  std::optional<DynamicLibrary> library_;
  Dictionary dictionary_;
  std::vector<std::string> missing_;
};

enum class Need { required, optional };

template <class Signature>
class EntryPoint;

/// An entry point, which is called like a function.
template <class R, class... A>
class EntryPoint<R(A...)> {
 public:
  EntryPoint(DriverTable* table, const char* symbol, Need need = Need::required)
      : symbol_(symbol), function_(reinterpret_cast<R (*)(A...)>(table->find(symbol))) {
    if (!function_ && need == Need::required) table->note_missing(symbol);
  }
  /// An optional function that older drivers have under another name.
  EntryPoint(DriverTable* table, const char* symbol, const char* older_symbol)
      : EntryPoint(table, symbol, Need::optional) {
    if (!function_) *this = EntryPoint(table, older_symbol, Need::optional);
  }
  /// Structures are declared by ergotune with the driver's layout, but clang's check of function types would compare
  /// their names.
#ifdef __clang__
  [[clang::no_sanitize("function")]]
#endif
  R operator()(A... arguments) const {
    return function_(arguments...);
  }
  explicit operator bool() const { return function_ != nullptr; }
  /// The name in the table, for messages.
  const char* symbol() const { return symbol_; }

 private:
  const char* symbol_;
  R (*function_)(A...);
};

}  // namespace ergotune
