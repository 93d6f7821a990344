// CUPTI's Range Profiler on the device at hand: rounds are launched by the caller, one per pass, each between
// begin_pass() and end_pass().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "counters/cupti_host.hpp"

namespace ergotune::cupti {

struct RangeObject;

/// A device whose context is current on this thread, and whether it may be counted on.
class ProfiledDevice {
 public:
  /// Throws UserError where there is no CUPTI, the device cannot be profiled, or this user may not.
  explicit ProfiledDevice(int device);
  const std::string& chip() const { return chip_; }
  /// Which of its counters the device offers.
  const std::vector<std::uint8_t>& availability() const { return availability_; }
  void* context() const { return context_; }

 private:
  std::string chip_;
  std::vector<std::uint8_t> availability_;
  void* context_ = nullptr;
};

/// The counters of one configuration's rounds. From its first pass until values() the GPU is watched, which changes
/// how it runs; before and after that nothing of it remains.
class CountedIterations {
 public:
  /// A round of one launch is counted as that kernel, from its start to its end; one of several as a whole.
  CountedIterations(const ProfiledDevice& device, const MetricSet& set, bool one_launch);
  ~CountedIterations();
  CountedIterations(const CountedIterations&) = delete;
  CountedIterations& operator=(const CountedIterations&) = delete;

  void begin_pass();
  /// The round has ended.
  void end_pass();
  bool complete() const { return complete_; }
  /// The metrics' values in the set's order. Throws Error when passes are missing or the device dropped counters.
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
