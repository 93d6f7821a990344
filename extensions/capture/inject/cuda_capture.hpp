// Taking a CUDA launch down: geometry, arguments, the memory that they point to, code.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/kernel_source/signature.hpp"
#include "capture/capture_folder.hpp"
#include "capture/inject/cuda_driver.hpp"
#include "capture/inject/kernel_log.hpp"

namespace ergotune::inject::cuda {

/// A launch as the driver is given it.
struct Call {
  Handle function = nullptr, stream = nullptr;
  LaunchShape shape;
  std::size_t shared_bytes = 0;
  /// One of them: an address for each argument, or all arguments in one piece.
  void** parameters = nullptr;
  const std::byte* packed = nullptr;
  std::size_t packed_bytes = 0;
  std::string symbol;
};

/// One argument's bytes.
using ArgumentBytes = std::vector<std::byte>;

/// All arguments; empty where this driver does not tell their sizes (before CUDA 12.4).
std::vector<ArgumentBytes> arguments_of(const Call& call);
/// "0x7f2a00000000 (2 MiB from there), 4 bytes 0x00010000": for a list.
std::string description_of(const std::vector<ArgumentBytes>& arguments);

class CudaCapture {
 public:
  /// Waits for the device, and reads what the arguments point to. Throws std::runtime_error with why it cannot.
  explicit CudaCapture(const Call& call);
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
  void part_regions();
  static std::vector<std::byte> read(const Region& region);

  capture::CapturedLaunch launch_;
  std::vector<Region> regions_;
};

}  // namespace ergotune::inject::cuda
