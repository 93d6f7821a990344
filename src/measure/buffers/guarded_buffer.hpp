// Device memory between two guard zones with a known pattern, which reveal writes outside of the buffer. External
// memory has no guard zones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/device.hpp"

namespace ergotune {

class GuardedBuffer {
 public:
  /// Sizes of the zones in bytes. The first one preserves the alignment of the buffer; the second one is large because
  /// a kernel without a bounds check runs some blocks of threads beyond the end.
  static constexpr std::size_t kBefore = 4096, kBehind = 65536;

  /// Allocates and fills the buffer. The pattern depends on `number`, so that copying the zone of one buffer into that
  /// of another is detected. Throws DeviceError.
  GuardedBuffer(Device& device, std::span<const std::byte> contents, std::uint64_t number);

  /// Uses external memory in place: without zones, and with its present contents.
  GuardedBuffer(Device& device, std::unique_ptr<Buffer> foreign);

  /// The buffer without its zones, as passed to kernels.
  Buffer& inside() const { return *inside_; }
  /// The buffer with its zones, to be copied when everything is restored.
  Buffer& whole() const { return whole_ ? *whole_ : *inside_; }
  /// Writes contents and zones from the host.
  void write(std::span<const std::byte> contents);
  /// Checks the zones. Returns the changed position that is nearest to the buffer, in bytes from the buffer's start
  /// (negative before it); nullopt if none has changed.
  std::optional<std::int64_t> written_outside() const;

 private:
  Device& device_;
  std::vector<std::byte> pattern_;  ///< of both zones; empty: there are no zones
  mutable std::vector<std::byte> found_;
  std::unique_ptr<Buffer> whole_, inside_;  ///< whole_ is null if there are no zones
};

}  // namespace ergotune
