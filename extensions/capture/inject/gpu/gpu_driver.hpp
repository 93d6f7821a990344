// The driver's functions that the libraries for CUDA and for HIP programs call, found in the driver that the program
// has loaded. Both libraries are built from the same files; ERGOTUNE_INJECT_HIP is defined for the second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#ifdef ERGOTUNE_INJECT_HIP
#define ERGOTUNE_NAMED(cuda, hip) hip
#else
#define ERGOTUNE_NAMED(cuda, hip) cuda
#endif

namespace ergotune::inject::gpu {

using Handle = void*;
using Address = std::uint64_t;

/// cuLaunchKernel.
using LaunchKernel = int(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**,
                         void**);

/// A function of the driver as whatever it is; null where there is none.
struct FoundFunction {
  void* address = nullptr;
  template <class F>
  operator F*() const {
    return reinterpret_cast<F*>(address);
  }
};
/// By its name in CUDA's driver.
FoundFunction found(const char* name);

struct Driver {
  int (*cuCtxSynchronize)() = found("cuCtxSynchronize");
  int (*cuCtxGetDevice)(int*) = found("cuCtxGetDevice");
  int (*cuDeviceGetName)(char*, int, int) = found("cuDeviceGetName");
  int (*cuDeviceGetAttribute)(int*, int, int) = found("cuDeviceGetAttribute");
  int (*cuMemGetAddressRange_v2)(Address*, std::size_t*, Address) = found("cuMemGetAddressRange_v2");
  int (*cuMemcpyDtoH_v2)(void*, Address, std::size_t) = found("cuMemcpyDtoH_v2");
  int (*cuStreamIsCapturing)(Handle, int*) = found("cuStreamIsCapturing");
  int (*cuEventCreate)(Handle*, unsigned) = found("cuEventCreate");
  int (*cuEventRecord)(Handle, Handle) = found("cuEventRecord");
  int (*cuEventQuery)(Handle) = found("cuEventQuery");
  int (*cuEventDestroy_v2)(Handle) = found("cuEventDestroy_v2");
  int (*cuEventElapsedTime)(float*, Handle, Handle) = found("cuEventElapsedTime");
  int (*cuFuncGetAttribute)(int*, int, Handle) = found("cuFuncGetAttribute");
  int (*cuKernelGetAttribute)(int*, int, Handle, int) = found("cuKernelGetAttribute");
  // for `run`
  int (*cuCtxGetCurrent)(Handle*) = found("cuCtxGetCurrent");
  int (*cuMemAlloc_v2)(Address*, std::size_t) = found("cuMemAlloc_v2");
  int (*cuMemFree_v2)(Address) = found("cuMemFree_v2");
  int (*cuMemcpyDtoDAsync_v2)(Address, Address, std::size_t, Handle) = found("cuMemcpyDtoDAsync_v2");
  int (*cuMemcpyHtoDAsync_v2)(Address, const void*, std::size_t, Handle) = found("cuMemcpyHtoDAsync_v2");
  int (*cuMemcpyDtoHAsync_v2)(void*, Address, std::size_t, Handle) = found("cuMemcpyDtoHAsync_v2");
  int (*cuStreamSynchronize)(Handle) = found("cuStreamSynchronize");
  int (*cuPointerGetAttribute)(void*, int, Address) = found("cuPointerGetAttribute");
  int (*cuModuleLoadDataEx)(Handle*, const void*, unsigned, int*, void**) = found("cuModuleLoadDataEx");
  int (*cuModuleGetFunction)(Handle*, Handle, const char*) = found("cuModuleGetFunction");
  int (*cuFuncSetAttribute)(Handle, int, int) = found("cuFuncSetAttribute");
  int (*cuThreadExchangeStreamCaptureMode)(int*) = found("cuThreadExchangeStreamCaptureMode");
  int (*cuLaunchHostFunc)(Handle, void (*)(void*), void*) = found("cuLaunchHostFunc");
  LaunchKernel* cuLaunchKernel = found("cuLaunchKernel");
  // of CUDA 12.4; a launch may name a function or a kernel of a library
  int (*cuFuncGetParamInfo)(Handle, std::size_t, std::size_t*, std::size_t*) = found("cuFuncGetParamInfo");
  int (*cuKernelGetParamInfo)(Handle, std::size_t, std::size_t*, std::size_t*) = found("cuKernelGetParamInfo");

  /// Filled at the first call; what is not there stays null.
  static const Driver& get();
  /// The function of this name of the driver or of the compiler at run time, behind ours.
  static void* find(const char* name);
};

// What each of the two libraries says.

/// cuFuncGetAttribute; 0 where it is not known.
int attribute_of(Handle function, int attribute);
/// The code object with a kernel; empty where it was not seen being loaded.
std::string code_object_of(Handle function, const std::string& symbol);

}  // namespace ergotune::inject::gpu
