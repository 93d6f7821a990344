// A load of our own: chains of multiply-adds that keep a GPU busy, for calibration and for keeping a GPU
// warm.
#pragma once

#include <memory>

#include "device/device.hpp"
#include "measure/energy/energy.hpp"

namespace ergotune {

class DeviceLoad {
 public:
  /// Compiles and sizes its kernel. Throws UserError where the device speaks neither CUDA nor OpenCL, and
  /// DeviceError.
  explicit DeviceLoad(Device& device);
  /// Keeps the device busy until a host time; returns when it actually was.
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

}  // namespace ergotune
