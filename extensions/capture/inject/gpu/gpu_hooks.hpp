// The functions that stand in front of the driver's own (LD_PRELOAD): those by which code is loaded and looked up, and
// those that launch. Programs that link the driver find them by name, others through dlsym() and the driver's own
// lookup, as runtimes do.
#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <string_view>
#include <type_traits>

#include "capture/inject/gpu/gpu_functions.hpp"
#include "capture/inject/gpu/gpu_tuned.hpp"
#include "capture/inject/interpose.hpp"
#include "capture/inject/session.hpp"

#define ERGOTUNE_EXPORT extern "C" __attribute__((visibility("default")))

namespace ergotune::inject::gpu {

using inject::quietly, inject::Session, inject::CaptureRequest;

inline constexpr int kNotInitialised = 3;

struct Hook {
  Hook(const char* of, void* function, bool replaces) : name(of), ours(function), in_run_only(replaces) {}
  const char* name;
  void* ours;
  bool in_run_only;
  std::atomic<void*> own{nullptr};
};
template <class F>
void add_hook(std::deque<Hook>& hooks, const char* name, F* ours, bool in_run_only = false) {
  hooks.emplace_back(name, reinterpret_cast<void*>(ours), in_run_only);
}

/// All of this library.
std::deque<Hook>& hooks();
/// Those that CUDA and HIP do not share: each library's.
void add_own_hooks(std::deque<Hook>& hooks);
void add_compiler_hooks(std::deque<Hook>& hooks);

/// Null where there is none of that name.
Hook* hook_named(std::string_view name);

/// The driver's own, as the program has found it, or as it is in the driver.
template <class F>
F* own(Hook& hook) {
  void* found = hook.own;
  if (!found) hook.own = found = Driver::find(hook.name);
  return reinterpret_cast<F*>(found);
}
template <class F>
F* own(const char* name) {
  return own<F>(*hook_named(name));
}

/// The driver's own function is called, and what it made is noted; `missing` is returned where there is none.
template <class F, class Note, class... Arguments>
int call_and_note(const char* name, int missing, Note&& note, Arguments... arguments) {
  F* function = own<F>(name);
  if (!function) return missing;
  const int code = function(arguments...);
  if (code == 0) quietly(note);
  return code;
}
template <class F, class Note, class... Arguments>
int call_and_note(const char* name, Note&& note, Arguments... arguments) requires std::is_invocable_v<Note> {
  return call_and_note<F>(name, kNotInitialised, note, arguments...);
}

/// What was loaded ends.
int unload(const char* name, Handle code);
/// What was loaded in a context ends with it.
template <class F, class... Which>
int end_context(const char* name, Which... which) {
  return call_and_note<F>(
      name, [] { forget_tuned(); }, which...);
}

/// The last release of a device's context ends it.
int release_context(const char* name, int device);

/// A launch on its way to the driver: a tuned one takes its place (`driver` launches it), or it is watched.
int launch(Call& call, void** extra, LaunchKernel* driver, OwnLaunch own);

/// What stands in front of a function that the driver's own lookup found.
void put_in_front(const std::string& name, void** function);

}  // namespace ergotune::inject::gpu
