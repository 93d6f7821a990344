// A program's launches while they are listed or captured.
#pragma once

#include "capture/inject/gpu/gpu_call.hpp"

namespace ergotune::inject::gpu {

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
