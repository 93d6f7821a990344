// Functions of ours in front of a driver's (LD_PRELOAD): programs that link the driver find ours by name, others, which
// open it with dlopen(), through our dlsym(). Each of our libraries exports the functions that it stands in front of.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <string>
#include <string_view>

#define ERGOTUNE_EXPORT extern "C" __attribute__((visibility("default")))

namespace ergotune::inject {

/// The loader's own.
void* own_dlsym(void* library, const char* name);

/// What stands in front of `own`, which a program has looked up by this name; `own` itself where nothing does.
void* function_in_front(const char* name, void* own) noexcept;

/// The library that the program has loaded from a file whose name begins with `name`; null where there is none. A
/// package or a plugin may bring one of its own, which the loader's search does not find.
void* loaded_library(std::string_view name);

/// A function of the driver behind ours: as the program has found it, or as find_function() does.
class OwnFunction {
 public:
  explicit OwnFunction(const char* name) : name_(name) {}
  template <class F>
  F* get() {
    return reinterpret_cast<F*>(address());
  }
  /// False where the program has another one already, of another driver.
  bool is(void* found) {
    void* none = nullptr;
    return address_.compare_exchange_strong(none, found) || none == found;
  }

 private:
  void* address();
  std::string name_;
  std::atomic<void*> address_{nullptr};
};
/// Lives for ever.
OwnFunction& own_function(const char* name);

// What each library says.

/// Null where there is none.
void* find_function(const char* name);
/// Whether programs that look a function up get ours; else they get their own.
bool stands_in_front(std::string_view name);

}  // namespace ergotune::inject
