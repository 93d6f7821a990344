// Which OpenCL devices there are, and what is known of each.
#pragma once

#include <optional>
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
  /// Platform, device and driver versions: what compiled code depends on.
  std::string versions;
};

/// All devices of all platforms, GPUs first. Empty with a note when there is none.
std::vector<DeviceEntry> find_devices(std::string* note = nullptr);
/// Throws UserError when it is not there (any more).
DeviceEntry find_device(const std::string& id);

/// Throws DeviceError of the kind `fault` unless `code` is CL_SUCCESS; memory that runs out is always
/// out_of_memory.
void check(cl_int code, DeviceFault fault, const char* what);

/// Some of a device's compute units, which kernels can be kept to; released with the object.
class SubDevice {
 public:
  /// So many from `first` on. Throws DeviceError(launch) where the device has fewer, DeviceError(unsupported) where it
  /// is not taken apart.
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
  /// An external queue, owned by the application.
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
