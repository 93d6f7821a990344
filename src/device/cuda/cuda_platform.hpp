// Lists CUDA devices and their properties, without creating a context, and partitions their SMs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/cuda/cuda_api.hpp"

namespace ergotune::cuda {

struct DeviceEntry {
  DeviceInfo info;
  CUdevice device = 0;
  int architecture = 0;  ///< 90 for sm_90
  /// Limits of dynamic shared memory in bytes without opt-in (48 KiB) and with opt-in.
  int shared_limit = 0, shared_limit_optin = 0;
};

/// Returns the entries of all devices of a driver with CUDA's interface, made by `describe` from a device, its number
/// and the driver's version; if there are none, sets `note`. `name`: "cuda" or "hip"; `variables`: may hide devices.
template <class Entry>
std::vector<Entry> list_devices(const Api& api, const std::string& name, const std::string& variables,
                                Entry (*describe)(CUdevice device, int number, int version), std::string* note) {
  std::vector<Entry> found;
  std::string why = api.problem();
  int count = 0, version = 0;
  if (api.usable()) {
    CUresult code = api.cuInit(0);
    if (code == CUDA_SUCCESS) code = api.cuDeviceGetCount(&count);
    why = code == CUDA_SUCCESS ? "the driver has no device (is " + variables + " empty?)"
                               : "its devices cannot be listed: " + api.error_text(code);
    api.cuDriverGetVersion(&version);
  }
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    if (api.cuDeviceGet(&device, i) == CUDA_SUCCESS) found.push_back(describe(device, i, version));
  }
  if (found.empty() && note) *note = name + ": " + why;
  return found;
}
/// Returns the normal form of a device's PCI address; empty if the driver does not report it.
std::string pci_address_of(const Api& api, CUdevice device);

/// Opens a device of a driver with CUDA's interface.
std::unique_ptr<Device> open_device(const Api& api, DeviceEntry entry);

/// Returns all devices in CUDA's order; if there are none, sets `note`.
std::vector<DeviceEntry> find_devices(std::string* note = nullptr);
/// Throws UserError if the device does not exist.
DeviceEntry find_device(const std::string& id);

/// Returns the number of SMs of which partitions are multiples; 0: not supported.
unsigned multiprocessor_unit(CUdevice device);

/// Kernels on its streams run only on its SMs; memory and code belong to the primary context. Destroyed with the
/// object.
class GreenContext {
 public:
  /// Throws DeviceError(unsupported) if the driver does not support it.
  GreenContext(CUdevice device, std::vector<CUdevResource> multiprocessors);
  GreenContext(const GreenContext&) = delete;
  GreenContext& operator=(const GreenContext&) = delete;
  ~GreenContext();
  /// Returns a stream, which the caller must destroy before this object.
  CUstream make_stream(int priority) const;

 private:
  CUgreenCtx context_ = nullptr;
};

/// Partitions of the SMs of one device; the device is divided at the first request.
class SmPartitions {
 public:
  explicit SmPartitions(CUdevice device) : device_(device) {}
  /// Returns `count` SMs beginning with `first`; equal requests share a context. Throws DeviceError(launch) for a
  /// partition that the driver does not support, DeviceError(unsupported) if it supports none.
  std::shared_ptr<const GreenContext> part(std::uint32_t first, std::uint32_t count);

 private:
  void split_sms();

  CUdevice device_;
  std::vector<CUdevResource> groups_;  ///< of unit_ SMs each
  CUdevResource rest_{};               ///< the SMs that do not fill a group
  std::uint32_t unit_ = 0, total_ = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::weak_ptr<const GreenContext>> parts_;
};

}  // namespace ergotune::cuda
