// Taking a launch of CUDA or HIP down: geometry, arguments, the memory that they point to, code.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/kernel_source/signature.hpp"
#include "capture/capture_folder.hpp"
#include "capture/inject/gpu/gpu_call.hpp"

namespace ergotune::inject::gpu {

class GpuCapture {
 public:
  /// Waits for the device, and reads what the arguments point to. Throws std::runtime_error with why it cannot.
  explicit GpuCapture(const Call& call);
  /// The launch is queued: waits, reads again, writes the folder. Returns what its user should know.
  std::vector<std::string> finish(const std::string& folder);

 private:
  struct Region {
    std::size_t argument = 0;
    Address address = 0, allocation = 0;
    std::size_t bytes = 0;
  };
  void take_code(const Call& call, const kernel_source::Demangled& name);
  void take_arguments(const Call& call, const kernel_source::Demangled& name);
  void follow_addresses();
  void follow_memory();
  std::size_t add_region(Address address, const Allocation& allocation);
  std::size_t part_regions();
  static std::vector<std::byte> read(const Region& region);

  Handle function_;
  capture::CapturedLaunch launch_;
  std::vector<Region> regions_;
};

}  // namespace ergotune::inject::gpu
