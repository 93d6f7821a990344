// The functions that stand in front of the driver's own (LD_PRELOAD): those by which code is loaded and looked up, and
// those that launch. Programs that link the driver find them by name, others through dlsym() and the driver's own
// lookup, as runtimes do.
#pragma once

#include <type_traits>

#include "capture/inject/gpu/gpu_functions.hpp"
#include "capture/inject/gpu/gpu_tuned.hpp"
#include "capture/inject/interpose.hpp"
#include "capture/inject/session.hpp"

namespace ergotune::inject::gpu {

using inject::function_in_front;
using inject::quietly, inject::Session, inject::CaptureRequest, inject::OwnFunction, inject::own_function;

inline constexpr int kNotInitialised = 3;

/// The driver's own function, which takes these arguments, is called, and what it made is noted; `missing` is returned
/// where there is none.
template <class Note, class... Arguments>
int call_and_note(const char* name, int missing, Note&& note, Arguments... arguments) {
  auto* const function = own_function(name).get<int(Arguments...)>();
  if (!function) return missing;
  const int code = function(arguments...);
  if (code == 0) quietly(note);
  return code;
}
template <class Note, class... Arguments>
int call_and_note(const char* name, Note&& note, Arguments... arguments) requires std::is_invocable_v<Note> {
  return call_and_note(name, kNotInitialised, note, arguments...);
}

/// What was loaded ends.
int unload(const char* name, Handle code);
/// What was loaded in a context ends with it.
template <class... Which>
int end_context(const char* name, Which... which) {
  return call_and_note(
      name, [] { forget_tuned(); }, which...);
}

/// The last release of a device's context ends it.
int release_context(const char* name, int device);

/// A launch on its way to the driver: a tuned one takes its place (`driver` launches it), or it is watched.
int launch(Call& call, void** extra, LaunchKernel* driver, OwnLaunch own);

// A program's launches while they are listed or captured.

/// While one lives, calls of the thread are ours and not the program's.
struct Busy {
  Busy() { now = true; }
  ~Busy() { now = false; }
  static inline constinit thread_local bool now = false;
};

/// Counted, timed, and taken down where its kernel is wanted. Between both the thread makes the program's launch, which
/// returned `code`.
void before_launch(const Call& call);
void after_launch(int code);
/// Both, around the launch; the caller is busy.
int watch_launch(Call& call, OwnLaunch own) noexcept;

/// Reports what was not reported yet.
void end_watch() noexcept;

}  // namespace ergotune::inject::gpu
