// A kernel of multiply-add chains that keeps a GPU busy, for calibration and to keep a GPU warm.
#pragma once

#include <memory>

#include "device/device.hpp"
#include "measure/energy/energy.hpp"

namespace ergotune {

class DeviceLoad {
 public:
  /// Compiles the kernel and determines its size. Throws UserError if the device supports neither CUDA nor OpenCL, and
  /// DeviceError.
  explicit DeviceLoad(Device& device);
  /// Keeps the device busy until the host time `end`; returns the span in which it was busy.
  TimeSpan work_until(double end);

 private:
  void bind(int steps);
  double shortest_of(int launches);
  Device& device_;
  LaunchGeometry geometry_;
  std::unique_ptr<LoadedKernel> kernel_;
  std::unique_ptr<Buffer> out_;
  std::unique_ptr<Marker> marker_[2];
  double launch_seconds_ = 5e-4;
};

/// Keeps a GPU warm between configurations. A GPU that is idle for a moment reduces its clocks and cools down, and then
/// needs some tenths of a second to reach its steady state again.
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
