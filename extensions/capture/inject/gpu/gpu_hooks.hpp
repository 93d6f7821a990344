// The functions that stand in front of the driver's own (LD_PRELOAD): those by which code is loaded and looked up, and
// those that launch. Programs that link the driver find them by name, others through dlsym() and the driver's own
// lookup, as runtimes do.
#pragma once

#include <string>
#include <type_traits>

#include "capture/inject/gpu/gpu_functions.hpp"
#include "capture/inject/gpu/gpu_tuned.hpp"
#include "capture/inject/interpose.hpp"
#include "capture/inject/session.hpp"

namespace ergotune::inject::gpu {

using inject::function_in_front;
using inject::quietly, inject::Session, inject::CaptureRequest, inject::OwnFunction, inject::own_function;

inline constexpr int kNotInitialised = 3;

/// The driver's own function is called, and what it made is noted; `missing` is returned where there is none.
template <class F, class Note, class... Arguments>
int call_and_note(const char* name, int missing, Note&& note, Arguments... arguments) {
  F* function = own_function(name).get<F>();
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

}  // namespace ergotune::inject::gpu
