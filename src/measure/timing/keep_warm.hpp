// Keeps a GPU warm between configurations. A GPU that is idle for a moment reduces its clocks and cools down, and then
// needs some tenths of a second to reach its steady state again.
#pragma once

#include <memory>

#include "measure/energy/device_load.hpp"

namespace ergotune {

class KeepWarm {
 public:
  /// Longest time in s for which a GPU is kept warm without a configuration.
  static constexpr double kLongest = 5.0;
  /// Returns nullptr if the device cannot run the load; measurements work without it.
  static std::unique_ptr<KeepWarm> make(Device& device);
  /// Keeps the device busy for about `seconds`; returns false on failure.
  bool heat(double seconds);

 private:
  explicit KeepWarm(Device& device) : load_(device) {}
  DeviceLoad load_;
};

}  // namespace ergotune
