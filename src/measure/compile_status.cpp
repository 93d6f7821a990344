#include "measure/compile_status.hpp"

#include "device/device.hpp"

namespace ergotune {

Status compile_status(const std::exception& error) {
  const auto* failure = dynamic_cast<const DeviceError*>(&error);
  if (failure && failure->fault() == DeviceFault::unsupported) return Status::unsupported;
  if (failure && failure->fault() == DeviceFault::timeout) return Status::timeout;
  return Status::compile_error;
}

}  // namespace ergotune
