// Device memory between two zones of a known pattern: what a kernel writes outside of its buffer is seen
// there. external memory has none.
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
  /// Bytes of the zones. The first keeps the buffer as well aligned as its memory is; a kernel that forgets
  /// the end of its data runs some blocks of threads past it.
  static constexpr std::size_t kBefore = 4096, kBehind = 65536;

  /// Allocates and fills. Each `number` has a pattern of its own, so that copying one buffer's zone into
  /// another's is seen. Throws DeviceError.
  GuardedBuffer(Device& device, std::span<const std::byte> contents, std::uint64_t number);

  /// external memory, as it is: without zones, and as it was filled.
  GuardedBuffer(Device& device, std::unique_ptr<Buffer> foreign);

  /// What kernels are given: exactly the buffer.
  Buffer& inside() const { return *inside_; }
  /// Buffer and zones: what is copied to put all of it back.
  Buffer& whole() const { return whole_ ? *whole_ : *inside_; }
  /// Writes contents and zones, from the host.
  void write(std::span<const std::byte> contents);
  /// Reads the zones: the place nearest to the buffer where one has changed, in bytes from the buffer's start
  /// (negative before it); nullopt where none has.
  std::optional<std::int64_t> written_outside() const;

 private:
  Device& device_;
  std::vector<std::byte> pattern_;  ///< of both zones; empty where there are none
  mutable std::vector<std::byte> found_;
  std::unique_ptr<Buffer> whole_, inside_;  ///< whole_ is null where there are no zones
};

}  // namespace ergotune
