// A vendor library's entry points as one table: each function is named once, with its type, and looked up
// once when the table is made. Required and optional ones are distinguished, so that an older driver serves as
// far as it can.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/dynamic_library.hpp"

namespace ergotune {

/// What to open: the file that an environment variable names, else the usual ones.
std::vector<std::string> library_names(const char* variable, std::vector<std::string> usual);

/// Base of a table. The derived struct's members are EntryPoint objects that take `this` and their symbol's name. A
/// process keeps the tables of its drivers: a driver has threads, which a closed library would leave without their
/// code, and lists that only an open one can find.
class DriverTable {
 public:
  /// True when the library is open and no required entry point is missing.
  bool usable() const { return library_.has_value() && missing_.empty(); }
  /// Why it is not usable, for one line of a message.
  std::string problem() const;
  /// The file that was opened; empty when none was.
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
  /// What a library calls the function that the table has as `symbol`, where it has the same ones under names of its
  /// own; nullptr: it has none like it.
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

/// One entry point, called like the function it is.
template <class R, class... A>
class EntryPoint<R(A...)> {
 public:
  EntryPoint(DriverTable* table, const char* symbol, Need need = Need::required)
      : symbol_(symbol), function_(reinterpret_cast<R (*)(A...)>(table->find(symbol))) {
    if (!function_ && need == Need::required) table->note_missing(symbol);
  }
  /// An optional one that older drivers know by another name.
  EntryPoint(DriverTable* table, const char* symbol, const char* older_symbol)
      : EntryPoint(table, symbol, Need::optional) {
    if (!function_) *this = EntryPoint(table, older_symbol, Need::optional);
  }
  /// Its structures are declared by us, to the driver's layout: clang's check of function types would compare their
  /// names.
#ifdef __clang__
  [[clang::no_sanitize("function")]]
#endif
  R operator()(A... arguments) const {
    return function_(arguments...);
  }
  explicit operator bool() const { return function_ != nullptr; }
  /// The driver's name for it, for messages.
  const char* symbol() const { return symbol_; }

 private:
  const char* symbol_;
  R (*function_)(A...);
};

}  // namespace ergotune
