// Launching a tuned kernel in place of the program's own.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "capture/inject/opencl/opencl_objects.hpp"

namespace ergotune::inject {

/// What the command says to one kind of launch of one kernel: leave it, or this instead.
struct TunedLaunch {
  // asked with
  cl_device_id device = nullptr;
  LaunchShape requested;
  // answered
  bool use = false;
  LaunchShape shape;
  std::string description;
  cl_program program = nullptr;
  cl_kernel kernel = nullptr;
  /// Of the program's arguments, those that `kernel` has.
  std::vector<std::uint64_t> versions;
  std::mutex mutex;
  std::uint64_t launches = 0;

  TunedLaunch() = default;
  TunedLaunch(const TunedLaunch&) = delete;
  TunedLaunch& operator=(const TunedLaunch&) = delete;
  ~TunedLaunch();
};

/// Queues the tuned kernel, if there is one for this launch; nullopt: the program's own is to be queued, because
/// nothing is tuned for it, or because something failed.
std::optional<cl_int> launch_tuned(cl_command_queue queue, KernelState& kernel, const LaunchShape& shape,
                                   const std::size_t* offset, cl_uint waits, const cl_event* waits_for,
                                   cl_event* event);

/// Tells the command how often each was launched, as far as it was not told.
void report_tuned();

}  // namespace ergotune::inject
