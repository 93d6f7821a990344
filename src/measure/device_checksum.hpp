// Checksums of device memory that the device works out itself: nothing but the sum crosses the bus.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "device/device.hpp"

namespace ergotune {

class DeviceChecksum {
 public:
  /// The device must live longer. Compiles its kernel at the first use.
  explicit DeviceChecksum(Device& device) : device_(device) {}
  /// Depends on every byte and its place. Waits for what was queued before. nullopt where the device's compiler or
  /// driver refuses the kernel.
  std::optional<std::uint64_t> of(const Buffer& buffer);
  /// Reads the buffer and writes next to nothing, queued with the launches: other contents of the caches, those not yet
  /// written back among them, make way for it. False where the device refuses the kernel.
  bool sweep(const Buffer& buffer);

 private:
  bool ready();
  std::size_t launch(const Buffer& buffer);

  Device& device_;
  bool tried_ = false;
  std::unique_ptr<LoadedKernel> kernel_;
  std::unique_ptr<Buffer> sums_;  ///< one of each block
};

}  // namespace ergotune
