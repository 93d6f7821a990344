#include "device/cuda/cuda_api.hpp"

#include <fmt/format.h>

namespace ergotune::cuda {

const Api& api() {
  static const Api& table =
      *new Api(library_names("ERGOTUNE_CUDA", {"libcuda.so.1", "libcuda.so"}));  // never closed (driver_table.hpp)
  return table;
}

std::string Api::error_text(CUresult code) const {
  const char* name = hipGetErrorName ? hipGetErrorName(code) : nullptr;
  const char* message = hipGetErrorString ? hipGetErrorString(code) : nullptr;
  if (cuGetErrorName) cuGetErrorName(code, &name);
  if (cuGetErrorString) cuGetErrorString(code, &message);
  return fmt::format("{} ({}){}{}", name ? name : "error", code, message ? ": " : "", message ? message : "");
}

void check(CUresult code, DeviceFault fault, const char* what) { api().check(code, fault, what); }

DeviceFault fault_of(CUresult code, DeviceFault otherwise) {
  switch (code) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return DeviceFault::out_of_memory;
    case CUDA_ERROR_LAUNCH_TIMEOUT:
      return DeviceFault::timeout;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      return DeviceFault::launch;
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return DeviceFault::compile;
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return DeviceFault::runtime;
    default:
      return otherwise;
  }
}

void Api::check(CUresult code, DeviceFault fault, const char* what) const {
  if (code == CUDA_SUCCESS) return;
  throw DeviceError(fault_of(code, fault), fmt::format("{}: {}", what, error_text(code)), code);
}

}  // namespace ergotune::cuda
