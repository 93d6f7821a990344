// Checksums of device memory, computed on the device so that only the sum is transferred.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "device/device.hpp"

namespace ergotune {

class DeviceChecksum {
 public:
  /// The device must outlive the object. The kernel is compiled at the first use.
  explicit DeviceChecksum(Device& device) : device_(device) {}
  /// Returns a checksum that depends on each byte and its position. Waits for previously queued work. nullopt if the
  /// device's compiler or driver rejects the kernel.
  std::optional<std::uint64_t> of(const Buffer& buffer);
  /// Reads the buffer and writes almost nothing, queued with the launches, so that other contents of the caches are
  /// evicted and modified lines are written back. Returns false if the device rejects the kernel.
  bool sweep(const Buffer& buffer);

 private:
  bool ready();
  std::size_t launch(const Buffer& buffer);

  Device& device_;
  bool tried_ = false;
  std::unique_ptr<LoadedKernel> kernel_;
  std::unique_ptr<Buffer> sums_;  ///< one per block
};

}  // namespace ergotune
