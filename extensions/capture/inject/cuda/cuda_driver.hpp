// The driver's functions that the library for CUDA programs calls, found in the libcuda that the program has loaded.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ergotune::inject::cuda {

using Handle = void*;
using Address = std::uint64_t;

struct Driver {
  int (*cuCtxSynchronize)() = nullptr;
  int (*cuCtxGetDevice)(int*) = nullptr;
  int (*cuDeviceGetName)(char*, int, int) = nullptr;
  int (*cuMemGetAddressRange_v2)(Address*, std::size_t*, Address) = nullptr;
  int (*cuMemcpyDtoH_v2)(void*, Address, std::size_t) = nullptr;
  int (*cuStreamIsCapturing)(Handle, int*) = nullptr;
  int (*cuEventCreate)(Handle*, unsigned) = nullptr;
  int (*cuEventRecord)(Handle, Handle) = nullptr;
  int (*cuEventQuery)(Handle) = nullptr;
  int (*cuEventDestroy_v2)(Handle) = nullptr;
  int (*cuEventElapsedTime)(float*, Handle, Handle) = nullptr;
  int (*cuFuncGetAttribute)(int*, int, Handle) = nullptr;
  // for `run`
  int (*cuCtxGetCurrent)(Handle*) = nullptr;
  int (*cuMemAlloc_v2)(Address*, std::size_t) = nullptr;
  int (*cuMemFree_v2)(Address) = nullptr;
  int (*cuMemcpyDtoDAsync_v2)(Address, Address, std::size_t, Handle) = nullptr;
  int (*cuMemcpyDtoHAsync_v2)(void*, Address, std::size_t, Handle) = nullptr;
  int (*cuStreamSynchronize)(Handle) = nullptr;
  int (*cuPointerGetAttribute)(void*, int, Address) = nullptr;
  int (*cuModuleLoadDataEx)(Handle*, const void*, unsigned, int*, void**) = nullptr;
  int (*cuModuleGetFunction)(Handle*, Handle, const char*) = nullptr;
  int (*cuFuncSetAttribute)(Handle, int, int) = nullptr;
  int (*cuThreadExchangeStreamCaptureMode)(int*) = nullptr;
  int (*cuLaunchKernel)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**,
                        void**) = nullptr;
  // of CUDA 12.4; a launch may name a function or a kernel of a library
  int (*cuFuncGetParamInfo)(Handle, std::size_t, std::size_t*, std::size_t*) = nullptr;
  int (*cuKernelGetParamInfo)(Handle, std::size_t, std::size_t*, std::size_t*) = nullptr;

  /// Filled at the first call; what is not there stays null.
  static const Driver& get();
  /// Any function of that library.
  static void* find(const char* name);
};

}  // namespace ergotune::inject::cuda
