// Keeps a GPU warm between configurations: a GPU that idles for a moment drops its clocks, cools down, and
// then needs tenths of a second to find its steady state again.
#pragma once

#include <memory>

#include "measure/energy/device_load.hpp"

namespace ergotune {

class KeepWarm {
 public:
  /// A GPU is not kept warm for longer than this without a configuration, s: then it may cool down.
  static constexpr double kLongest = 5.0;
  /// nullptr where the device cannot run the load: it is a help, not a need.
  static std::unique_ptr<KeepWarm> make(Device& device);
  /// Keeps the device busy for about `seconds`; false when that failed.
  bool heat(double seconds);

 private:
  explicit KeepWarm(Device& device) : load_(device) {}
  DeviceLoad load_;
};

}  // namespace ergotune
