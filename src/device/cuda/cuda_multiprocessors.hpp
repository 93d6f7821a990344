// Parts of a GPU that kernels can be kept to: green contexts, CUDA 12.5 and later.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "device/cuda/cuda_api.hpp"

namespace ergotune::cuda {

/// In multiples of how many multiprocessors the driver gives parts of a device; 0: not at all.
unsigned multiprocessor_unit(CUdevice device);

/// Kernels on its streams run on its multiprocessors and no others; memory and code are the primary context's.
/// Destroyed with the object.
class GreenContext {
 public:
  /// Throws DeviceError(unsupported) where the driver refuses.
  GreenContext(CUdevice device, std::vector<CUdevResource> multiprocessors);
  GreenContext(const GreenContext&) = delete;
  GreenContext& operator=(const GreenContext&) = delete;
  ~GreenContext();
  /// The caller destroys the stream, and before this.
  CUstream make_stream(int priority) const;

 private:
  CUgreenCtx context_ = nullptr;
};

/// The multiprocessors of one device, taken apart when first requested.
class MultiprocessorParts {
 public:
  explicit MultiprocessorParts(CUdevice device) : device_(device) {}
  /// So many from `first` on; those who ask for the same share it. Throws DeviceError(launch) for a part that the
  /// driver does not give, DeviceError(unsupported) where it gives none.
  std::shared_ptr<const GreenContext> part(std::uint32_t first, std::uint32_t count);

 private:
  void take_apart();

  CUdevice device_;
  std::vector<CUdevResource> groups_;  ///< of unit_ multiprocessors each
  CUdevResource rest_{};               ///< what does not fill a group
  std::uint32_t unit_ = 0, total_ = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::weak_ptr<const GreenContext>> parts_;
};

}  // namespace ergotune::cuda
