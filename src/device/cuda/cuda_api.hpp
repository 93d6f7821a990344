// CUDA's driver API: the declarations that ergotune uses, and the entry points of libcuda as one table. Numbers and
// versioned names are those of cuda.h (CUDA 11.4 to 13), part of the driver's stable binary interface. AMD's HIP
// runtime has the same functions, with the same meaning and codes, under different names (hip_api.hpp), so that code
// written for this table runs on both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/driver_table.hpp"
#include "device/device.hpp"

namespace ergotune::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUcontext = struct ContextHandle*;
using CUmodule = struct ModuleHandle*;
using CUfunction = struct FunctionHandle*;
using CUstream = struct StreamHandle*;
using CUevent = struct EventHandle*;
using CUgraph = struct GraphHandle*;
using CUgraphExec = struct GraphExecHandle*;
using CUgreenCtx = struct GreenContextHandle*;
using CUdevResourceDesc = struct ResourceDescriptionHandle*;
/// A part of a device. Of a set of SMs, only the number is used.
struct CUdevResource {
  int type;
  unsigned char internal[92];
  union {
    struct {
      unsigned count;
    } sm;
    unsigned char external[48];
  };
};
static_assert(sizeof(CUdevResource) == 144);
struct CUuuid {
  unsigned char bytes[16];
};

enum Result : CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
  CUDA_ERROR_INVALID_PC = 718,
  CUDA_ERROR_LAUNCH_FAILED = 719,
};

enum DeviceAttribute : int {
  MAX_THREADS_PER_BLOCK = 1,
  MAX_SHARED_MEMORY_PER_BLOCK = 8,
  WARP_SIZE = 10,
  MAX_REGISTERS_PER_BLOCK = 12,
  MULTIPROCESSOR_COUNT = 16,
  L2_CACHE_SIZE = 38,
  MAX_THREADS_PER_MULTIPROCESSOR = 39,
  COMPUTE_CAPABILITY_MAJOR = 75,
  COMPUTE_CAPABILITY_MINOR = 76,
  MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
  MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
};

enum FunctionAttribute : int {
  FUNC_MAX_THREADS_PER_BLOCK = 0,
  FUNC_SHARED_SIZE_BYTES = 1,
  FUNC_LOCAL_SIZE_BYTES = 3,
  FUNC_NUM_REGS = 4,
  FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
};

enum PointerAttribute : int { POINTER_DEVICE_ORDINAL = 9 };

enum JitOption : int { JIT_ERROR_LOG_BUFFER = 5, JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;
inline constexpr int kCaptureThreadLocal = 1;
inline constexpr int kResourceMultiprocessors = 1;
inline constexpr unsigned kGreenDefaultStream = 1;

struct Api : DriverTable {
  explicit Api(const std::vector<std::string>& libraries, Dictionary dictionary = nullptr)
      : DriverTable(libraries, dictionary) {}

  EntryPoint<CUresult(unsigned)> cuInit{this, "cuInit"};
  EntryPoint<CUresult(int*)> cuDriverGetVersion{this, "cuDriverGetVersion"};
  EntryPoint<CUresult(CUresult, const char**)> cuGetErrorName{this, "cuGetErrorName", Need::optional};
  EntryPoint<CUresult(CUresult, const char**)> cuGetErrorString{this, "cuGetErrorString", Need::optional};
  /// HIP's equivalent.
  EntryPoint<const char*(CUresult)> hipGetErrorName{this, "hipGetErrorName", Need::optional};
  EntryPoint<const char*(CUresult)> hipGetErrorString{this, "hipGetErrorString", Need::optional};
  EntryPoint<CUresult(int*)> cuDeviceGetCount{this, "cuDeviceGetCount"};
  EntryPoint<CUresult(CUdevice*, int)> cuDeviceGet{this, "cuDeviceGet"};
  EntryPoint<CUresult(char*, int, CUdevice)> cuDeviceGetName{this, "cuDeviceGetName"};
  /// Returns the UUID of a MIG instance if the device is one; if the function is missing, the UUID of the GPU is used.
  EntryPoint<CUresult(CUuuid*, CUdevice)> cuDeviceGetUuid_v2{this, "cuDeviceGetUuid_v2", Need::optional};
  EntryPoint<CUresult(CUuuid*, CUdevice)> cuDeviceGetUuid{this, "cuDeviceGetUuid"};
  EntryPoint<CUresult(char*, int, CUdevice)> cuDeviceGetPCIBusId{this, "cuDeviceGetPCIBusId"};
  EntryPoint<CUresult(std::size_t*, CUdevice)> cuDeviceTotalMem{this, "cuDeviceTotalMem_v2"};
  EntryPoint<CUresult(int*, int, CUdevice)> cuDeviceGetAttribute{this, "cuDeviceGetAttribute"};
  EntryPoint<CUresult(CUcontext*, CUdevice)> cuDevicePrimaryCtxRetain{this, "cuDevicePrimaryCtxRetain"};
  EntryPoint<CUresult(CUdevice)> cuDevicePrimaryCtxRelease{this, "cuDevicePrimaryCtxRelease_v2"};
  EntryPoint<CUresult(CUcontext)> cuCtxSetCurrent{this, "cuCtxSetCurrent"};
  EntryPoint<CUresult(CUcontext*)> cuCtxGetCurrent{this, "cuCtxGetCurrent"};
  EntryPoint<CUresult(CUdevice*)> cuCtxGetDevice{this, "cuCtxGetDevice", Need::optional};
  EntryPoint<CUresult()> cuCtxSynchronize{this, "cuCtxSynchronize"};
  EntryPoint<CUresult(CUmodule*, const void*, unsigned, int*, void**)> cuModuleLoadDataEx{this, "cuModuleLoadDataEx"};
  EntryPoint<CUresult(CUmodule)> cuModuleUnload{this, "cuModuleUnload"};
  EntryPoint<CUresult(CUfunction*, CUmodule, const char*)> cuModuleGetFunction{this, "cuModuleGetFunction"};
  EntryPoint<CUresult(int*, int, CUfunction)> cuFuncGetAttribute{this, "cuFuncGetAttribute"};
  EntryPoint<CUresult(CUfunction, int, int)> cuFuncSetAttribute{this, "cuFuncSetAttribute"};
  EntryPoint<CUresult(int*, CUfunction, int, std::size_t)> cuOccupancyMaxActiveBlocksPerMultiprocessor{
      this, "cuOccupancyMaxActiveBlocksPerMultiprocessor", Need::optional};
  EntryPoint<CUresult(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                      void**, void**)>
      cuLaunchKernel{this, "cuLaunchKernel"};
  EntryPoint<CUresult(CUdeviceptr*, std::size_t)> cuMemAlloc{this, "cuMemAlloc_v2"};
  EntryPoint<CUresult(CUdeviceptr)> cuMemFree{this, "cuMemFree_v2"};
  EntryPoint<CUresult(CUdeviceptr*, std::size_t*, CUdeviceptr)> cuMemGetAddressRange{this, "cuMemGetAddressRange_v2",
                                                                                     Need::optional};
  EntryPoint<CUresult(void*, int, CUdeviceptr)> cuPointerGetAttribute{this, "cuPointerGetAttribute"};
  EntryPoint<CUresult(void*, std::size_t, unsigned)> cuMemHostRegister{this, "cuMemHostRegister_v2", Need::optional};
  EntryPoint<CUresult(void*)> cuMemHostUnregister{this, "cuMemHostUnregister", Need::optional};
  EntryPoint<CUresult(CUdeviceptr, const void*, std::size_t, CUstream)> cuMemcpyHtoDAsync{this, "cuMemcpyHtoDAsync_v2"};
  EntryPoint<CUresult(void*, CUdeviceptr, std::size_t, CUstream)> cuMemcpyDtoHAsync{this, "cuMemcpyDtoHAsync_v2"};
  EntryPoint<CUresult(CUdeviceptr, CUdeviceptr, std::size_t, CUstream)> cuMemcpyDtoDAsync{this, "cuMemcpyDtoDAsync_v2"};
  EntryPoint<CUresult(CUdeviceptr, unsigned char, std::size_t, CUstream)> cuMemsetD8Async{this, "cuMemsetD8Async"};
  EntryPoint<CUresult(CUstream*, unsigned)> cuStreamCreate{this, "cuStreamCreate"};
  // Priorities: hints, ignored if these functions are missing.
  EntryPoint<CUresult(int*, int*)> cuCtxGetStreamPriorityRange{this, "cuCtxGetStreamPriorityRange", Need::optional};
  EntryPoint<CUresult(CUstream*, unsigned, int)> cuStreamCreateWithPriority{this, "cuStreamCreateWithPriority",
                                                                            Need::optional};
  EntryPoint<CUresult(CUstream, CUevent, unsigned)> cuStreamWaitEvent{this, "cuStreamWaitEvent"};
  EntryPoint<CUresult(CUstream, void (*)(void*), void*)> cuLaunchHostFunc{this, "cuLaunchHostFunc", Need::optional};
  EntryPoint<CUresult(CUstream)> cuStreamDestroy{this, "cuStreamDestroy_v2"};
  EntryPoint<CUresult(CUstream)> cuStreamSynchronize{this, "cuStreamSynchronize"};
  EntryPoint<CUresult(CUevent*, unsigned)> cuEventCreate{this, "cuEventCreate"};
  EntryPoint<CUresult(CUevent)> cuEventDestroy{this, "cuEventDestroy_v2"};
  EntryPoint<CUresult(CUevent, CUstream)> cuEventRecord{this, "cuEventRecord"};
  EntryPoint<CUresult(CUevent)> cuEventQuery{this, "cuEventQuery"};
  EntryPoint<CUresult(float*, CUevent, CUevent)> cuEventElapsedTime{this, "cuEventElapsedTime"};
  // Graphs: without them (drivers before CUDA 11.4), each launch is queued separately.
  EntryPoint<CUresult(CUstream, int)> cuStreamBeginCapture{this, "cuStreamBeginCapture_v2", Need::optional};
  EntryPoint<CUresult(CUstream, int*)> cuStreamIsCapturing{this, "cuStreamIsCapturing", Need::optional};
  EntryPoint<CUresult(CUstream, CUgraph*)> cuStreamEndCapture{this, "cuStreamEndCapture", Need::optional};
  EntryPoint<CUresult(CUgraphExec*, CUgraph, unsigned long long)> cuGraphInstantiate{
      this, "cuGraphInstantiateWithFlags", Need::optional};
  EntryPoint<CUresult(CUgraphExec, CUstream)> cuGraphLaunch{this, "cuGraphLaunch", Need::optional};
  EntryPoint<CUresult(CUgraphExec)> cuGraphExecDestroy{this, "cuGraphExecDestroy", Need::optional};
  EntryPoint<CUresult(CUgraph)> cuGraphDestroy{this, "cuGraphDestroy", Need::optional};

  // SM partitions (CUDA 12.5): without them, kernels run on any SM.
  EntryPoint<CUresult(CUdevice, CUdevResource*, int)> cuDeviceGetDevResource{this, "cuDeviceGetDevResource",
                                                                             Need::optional};
  EntryPoint<CUresult(CUdevResource*, unsigned*, const CUdevResource*, CUdevResource*, unsigned, unsigned)>
      cuDevSmResourceSplitByCount{this, "cuDevSmResourceSplitByCount", Need::optional};
  EntryPoint<CUresult(CUdevResourceDesc*, CUdevResource*, unsigned)> cuDevResourceGenerateDesc{
      this, "cuDevResourceGenerateDesc", Need::optional};
  EntryPoint<CUresult(CUgreenCtx*, CUdevResourceDesc, CUdevice, unsigned)> cuGreenCtxCreate{this, "cuGreenCtxCreate",
                                                                                            Need::optional};
  EntryPoint<CUresult(CUgreenCtx)> cuGreenCtxDestroy{this, "cuGreenCtxDestroy", Need::optional};
  EntryPoint<CUresult(CUstream*, CUgreenCtx, unsigned, int)> cuGreenCtxStreamCreate{this, "cuGreenCtxStreamCreate",
                                                                                    Need::optional};

  /// HIP's way to restrict the kernels of a stream to some CUs: one bit per CU.
  EntryPoint<CUresult(CUstream*, unsigned, const unsigned*)> hipExtStreamCreateWithCUMask{
      this, "hipExtStreamCreateWithCUMask", Need::optional};

  bool has_green_contexts() const {
    return cuDeviceGetDevResource && cuDevSmResourceSplitByCount && cuDevResourceGenerateDesc && cuGreenCtxCreate &&
           cuGreenCtxDestroy && cuGreenCtxStreamCreate;
  }
  bool has_graphs() const {
    return cuStreamBeginCapture && cuStreamEndCapture && cuGraphInstantiate && cuGraphLaunch && cuGraphExecDestroy &&
           cuGraphDestroy;
  }

  /// Returns "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered".
  std::string error_text(CUresult code) const;
  /// Throws DeviceError unless `code` is CUDA_SUCCESS. `fault` is used if the code does not determine the kind of
  /// fault: faults of a kernel are returned by whichever call comes next, and by all later calls in the context.
  void check(CUresult code, DeviceFault fault, const char* what) const;
};

/// Returns the table, which is loaded at first use from the library named by ERGOTUNE_CUDA, else from the system.
/// Callers must check usable().
const Api& api();

DeviceFault fault_of(CUresult code, DeviceFault otherwise);
/// Api::check for CUDA's driver.
void check(CUresult code, DeviceFault fault, const char* what);

/// Base class of objects that belong to a driver, and use its table. They are not copied, since they own their handles.
class DriverObject {
 public:
  explicit DriverObject(const Api& api) : api_(api) {}
  DriverObject(const DriverObject&) = delete;
  DriverObject& operator=(const DriverObject&) = delete;
  const Api& api() const { return api_; }

 protected:
  void check(CUresult code, DeviceFault fault, const char* what) const { api_.check(code, fault, what); }

 private:
  const Api& api_;
};

}  // namespace ergotune::cuda
