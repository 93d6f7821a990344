// Launching tuned code in place of a program's own kernel.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "capture/inject/gpu/gpu_call.hpp"
#include "capture/inject/gpu/gpu_verify.hpp"

namespace ergotune::inject::gpu {

/// What the command answered for one kind of launch of one kernel in one context: leave it, or this instead.
struct TunedLaunch {
  // asked with
  LaunchShape requested;
  std::size_t requested_shared = 0;
  // answered; written before `state` says so
  enum class State { left, unverified, used };
  std::atomic<State> state{State::left};
  std::string kernel, description;
  Replacement replacement;
  Tolerances tolerances;
  KernelClock clock;
  std::mutex verifying;
  int attempts = 0;
  std::atomic<std::uint64_t> launches{0};
};

/// Queues the tuned kernel, or both on copies where it was not verified yet; nullopt: the program's own is to be
/// queued.
std::optional<int> launch_tuned(const Call& call, LaunchKernel* driver, OwnLaunch own);

/// What is launched instead, where that was verified before: for a node of a graph. It counts as a launch.
std::optional<Replacement> verified_for(const Call& call);

/// The function's module was unloaded; without a function: a context has ended.
void forget_tuned(Handle function = nullptr);

/// Reports to the command how often each was launched since the last report.
void report_tuned();

}  // namespace ergotune::inject::gpu
