// Lets an application wrap the devices that it opens, for example to run its own functions instead of kernels.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "device/device.hpp"

namespace ergotune {

struct DeviceDecorator {
  /// Wraps each device that open_device() opens; may return it unchanged.
  std::function<std::unique_ptr<Device>(std::unique_ptr<Device>)> device;
  /// Replaces open_compiler(id); returns nullptr to use the default compiler.
  std::function<std::unique_ptr<Compiler>(const std::string& id)> compiler;
};

/// Sets the decorator for the complete process. Must not be called while another thread opens a device.
void decorate_devices(DeviceDecorator decorator);

/// Reports that a kernel, which the application itself has verified, has wrong outputs.
class WrongOutputs : public Error {
  using Error::Error;
};

}  // namespace ergotune
