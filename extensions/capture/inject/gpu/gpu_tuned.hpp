// Launching tuned code in place of a program's own kernel, once both have been given the same data, the tuned one in
// copies.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "capture/inject/gpu/gpu_call.hpp"

namespace ergotune::inject::gpu {

/// What is launched instead.
struct Replacement {
  Handle function = nullptr;
  std::array<unsigned, 3> grid{1, 1, 1}, block{1, 1, 1};
  unsigned shared_bytes = 0;

  int launch(LaunchKernel* launch, Handle stream, void** parameters, void** extra) const {
    return launch(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared_bytes, stream, parameters,
                  extra);
  }
};

struct Tolerances {
  double absolute = 0, relative = 0;
  /// Element types of the arguments' buffers ("float32"); empty where none is known: then bytes are compared.
  std::vector<std::string> types;
};

struct Verification {
  enum class Verdict {
    same,
    unchanged,  ///< the launch changed nothing, so that nothing is known
    different,
    impossible
  } verdict = Verdict::impossible;
  std::string reason;
  /// What the program's own launch returned; nullopt where it was not launched.
  std::optional<int> own;
};

/// Everything is queued on the launch's stream and waited for.
Verification verify(const Call& call, const Replacement& tuned, const Tolerances& tolerances, LaunchKernel* launch,
                    OwnLaunch own);

/// Queues the tuned kernel, or both on copies where it was not verified yet; nullopt: the program's own is to be
/// queued.
std::optional<int> launch_tuned(const Call& call, LaunchKernel* driver, OwnLaunch own);

/// What is launched instead, where that was verified before: for a node of a graph. It counts as a launch.
std::optional<Replacement> verified_for(const Call& call);

/// The function's module was unloaded; without a function: a context has ended.
void forget_tuned(Handle function = nullptr);

}  // namespace ergotune::inject::gpu
