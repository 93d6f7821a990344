// What an application puts around the devices that it opens: functions of its own in the place of kernels.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "device/device.hpp"

namespace ergotune {

struct DeviceDecorator {
  /// Around each device that open_device() opens; may give it back as it is.
  std::function<std::unique_ptr<Device>(std::unique_ptr<Device>)> device;
  /// In the place of open_compiler(id); nullptr: as without it.
  std::function<std::unique_ptr<Compiler>(const std::string& id)> compiler;
};

/// From now on, in all of this process. Not while another thread opens a device.
void decorate_devices(DeviceDecorator decorator);

/// A kernel that was verified where it was loaded, by the application itself, and whose outputs are wrong.
class WrongOutputs : public Error {
  using Error::Error;
};

}  // namespace ergotune
