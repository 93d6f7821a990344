// Taking a launch down: arguments, the contents of buffers before and after it, source and geometry.
#pragma once

#include <stdexcept>
#include <vector>

#include "capture/capture_folder.hpp"
#include "capture/inject/opencl/opencl_objects.hpp"

namespace ergotune::inject {

/// Why a launch cannot be captured. `kernel`: no launch of it can.
struct Refused : std::runtime_error {
  Refused(const std::string& why, bool kernel) : std::runtime_error(why), of_kernel(kernel) {}
  bool of_kernel;
};

class OpenclCapture {
 public:
  /// Waits for what the launch waits for, and reads its buffers. Throws Refused.
  OpenclCapture(cl_command_queue queue, cl_kernel handle, const KernelState& kernel, const LaunchShape& shape,
                const std::vector<cl_event>& waits_for);
  /// Once the launch is queued: waits for it, reads again, and writes the folder. Returns what its user should know.
  std::vector<std::string> finish(const std::string& folder);

 private:
  struct Buffer {
    std::size_t argument = 0, bytes = 0;
    cl_mem memory = nullptr;
  };
  void take_argument(cl_kernel informed, cl_uint position, const ArgumentValue& value);
  void take_buffer(capture::CapturedArgument& argument, const ArgumentValue& value, cl_uint position);
  /// Where the program leaves it to the driver.
  void choose_block(const std::array<std::size_t, 3>& demanded);
  void take_code(const KernelState& kernel);
  std::vector<std::byte> read(const Buffer& buffer);

  cl_command_queue queue_;
  cl_context context_;
  cl_device_id device_;
  capture::CapturedLaunch launch_;
  std::vector<Buffer> buffers_;
  std::size_t bytes_ = 0;
};

}  // namespace ergotune::inject
