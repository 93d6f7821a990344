// HIP's names for CUDA's functions.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace ergotune::hip {

/// HIP's names for the functions of CUDA's driver API. cuMemAlloc takes the address as a number and hipMalloc as a
/// pointer, which is equivalent on 64-bit machines; likewise elsewhere.
inline constexpr auto kDictionary = std::to_array<std::pair<std::string_view, const char*>>({
    {"cuInit", "hipInit"},
    {"cuDriverGetVersion", "hipDriverGetVersion"},
    {"cuDeviceGetCount", "hipGetDeviceCount"},
    {"cuDeviceGet", "hipDeviceGet"},
    {"cuDeviceGetName", "hipDeviceGetName"},
    {"cuDeviceGetUuid", "hipDeviceGetUuid"},
    {"cuDeviceGetPCIBusId", "hipDeviceGetPCIBusId"},
    {"cuDeviceTotalMem_v2", "hipDeviceTotalMem"},
    {"cuDeviceGetAttribute", "hipDeviceGetAttribute"},
    {"cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain"},
    {"cuDevicePrimaryCtxRelease_v2", "hipDevicePrimaryCtxRelease"},
    {"cuCtxSetCurrent", "hipCtxSetCurrent"},
    {"cuCtxGetCurrent", "hipCtxGetCurrent"},
    {"cuCtxGetDevice", "hipCtxGetDevice"},
    {"cuCtxSynchronize", "hipDeviceSynchronize"},
    {"cuModuleLoadDataEx", "hipModuleLoadDataEx"},
    {"cuModuleUnload", "hipModuleUnload"},
    {"cuModuleGetFunction", "hipModuleGetFunction"},
    {"cuModuleGetGlobal_v2", "hipModuleGetGlobal"},
    {"cuFuncGetAttribute", "hipFuncGetAttribute"},
    {"cuFuncSetAttribute", "hipFuncSetAttribute"},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"},
    {"cuLaunchKernel", "hipModuleLaunchKernel"},
    {"cuMemAlloc_v2", "hipMalloc"},
    {"cuMemFree_v2", "hipFree"},
    {"cuMemGetAddressRange_v2", "hipMemGetAddressRange"},
    {"cuPointerGetAttribute", "hipPointerGetAttribute"},
    {"cuMemHostRegister_v2", "hipHostRegister"},
    {"cuMemHostUnregister", "hipHostUnregister"},
    {"cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync"},
    {"cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync"},
    {"cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync"},
    {"cuMemcpyDtoH_v2", "hipMemcpyDtoH"},
    {"cuMemsetD8Async", "hipMemsetD8Async"},
    {"cuStreamCreate", "hipStreamCreateWithFlags"},
    {"cuCtxGetStreamPriorityRange", "hipDeviceGetStreamPriorityRange"},
    {"cuStreamCreateWithPriority", "hipStreamCreateWithPriority"},
    {"cuStreamWaitEvent", "hipStreamWaitEvent"},
    {"cuLaunchHostFunc", "hipLaunchHostFunc"},
    {"cuStreamDestroy_v2", "hipStreamDestroy"},
    {"cuStreamSynchronize", "hipStreamSynchronize"},
    {"cuEventCreate", "hipEventCreateWithFlags"},
    {"cuEventDestroy_v2", "hipEventDestroy"},
    {"cuEventRecord", "hipEventRecord"},
    {"cuEventQuery", "hipEventQuery"},
    {"cuEventElapsedTime", "hipEventElapsedTime"},
    {"cuStreamBeginCapture_v2", "hipStreamBeginCapture"},
    {"cuStreamIsCapturing", "hipStreamIsCapturing"},
    {"cuStreamEndCapture", "hipStreamEndCapture"},
    {"cuThreadExchangeStreamCaptureMode", "hipThreadExchangeStreamCaptureMode"},
    {"cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags"},
    {"cuGraphLaunch", "hipGraphLaunch"},
    {"cuGraphExecDestroy", "hipGraphExecDestroy"},
    {"cuGraphDestroy", "hipGraphDestroy"},
});

/// HIP's name of a function of CUDA's driver; null where it has none.
inline const char* hip_name(const char* symbol) {
  const auto found = std::ranges::find_if(kDictionary, [&](const auto& entry) { return entry.first == symbol; });
  if (found != kDictionary.end()) return found->second;
  return std::string_view(symbol).starts_with("hip") ? symbol : nullptr;
}

}  // namespace ergotune::hip
