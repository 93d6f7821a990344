// CUPTI's Range Profiler on a device of this machine. The caller launches iterations, one per pass, each between
// begin_pass() and end_pass().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "counters/cupti_host.hpp"

namespace ergotune::cupti {

struct RangeObject;

/// A device whose context is current on this thread, checked for permission to count.
class ProfiledDevice {
 public:
  /// Throws UserError if CUPTI is missing, the device cannot be profiled, or the user may not profile it.
  explicit ProfiledDevice(int device);
  const std::string& chip() const { return chip_; }
  /// The image of the counters that the device offers.
  const std::vector<std::uint8_t>& availability() const { return availability_; }
  void* context() const { return context_; }

 private:
  std::string chip_;
  std::vector<std::uint8_t> availability_;
  void* context_ = nullptr;
};

/// Counts the iterations of one configuration. From the first pass until values() the GPU is profiled, which changes
/// its timing; no effect remains afterwards.
class CountedIterations {
 public:
  /// `one_launch`: the iteration is a single kernel launch, counted from its start to its end; otherwise the iteration
  /// is counted as a whole.
  CountedIterations(const ProfiledDevice& device, const MetricSet& set, bool one_launch);
  ~CountedIterations();
  CountedIterations(const CountedIterations&) = delete;
  CountedIterations& operator=(const CountedIterations&) = delete;

  void begin_pass();
  /// Call it when the iteration has finished.
  void end_pass();
  bool complete() const { return complete_; }
  /// The values of the metrics in the set's order. Throws Error if passes are missing or the device dropped counters.
  std::vector<double> values();

 private:
  void disable() noexcept;
  const MetricSet& set_;
  bool one_launch_;
  RangeObject* ranges_ = nullptr;
  std::vector<std::uint8_t> data_;
  bool started_ = false, complete_ = false;
};

}  // namespace ergotune::cupti
