// Lists OpenCL devices and their properties.
#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"
#include "device/opencl/opencl_api.hpp"

namespace ergotune::opencl {

struct DeviceEntry {
  DeviceInfo info;
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  std::string platform_name;
  /// Platform, device and driver versions, on which compiled code depends.
  std::string versions;
};

/// Returns all devices of all platforms, GPUs first; if there are none, sets `note`.
std::vector<DeviceEntry> find_devices(std::string* note = nullptr);
/// Throws UserError if the device does not exist (any more).
DeviceEntry find_device(const std::string& id);

/// Throws DeviceError with `fault` unless `code` is CL_SUCCESS; lack of memory is always reported as out_of_memory.
void check(cl_int code, DeviceFault fault, const char* what);

/// Some of a device's compute units, to which kernels can be restricted; released with the object.
class SubDevice {
 public:
  /// `count` compute units beginning with `first`. Throws DeviceError(launch) if the device has fewer,
  /// DeviceError(unsupported) if it cannot be partitioned.
  SubDevice(const DeviceEntry& entry, cl_uint first, cl_uint count);
  SubDevice(const SubDevice&) = delete;
  SubDevice& operator=(const SubDevice&) = delete;
  ~SubDevice() { api().clReleaseDevice(device_); }
  cl_device_id get() const { return device_; }

 private:
  cl_device_id device_ = nullptr;
};

/// A context on one device; released with the object.
class Context {
 public:
  explicit Context(const DeviceEntry& entry);
  /// Uses a context that the application owns.
  explicit Context(cl_context foreign) : context_(foreign), owned_(false) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();
  cl_context get() const { return context_; }

 private:
  cl_context context_ = nullptr;
  bool owned_ = true;
};

}  // namespace ergotune::opencl
