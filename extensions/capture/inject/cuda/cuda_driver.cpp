#include "capture/inject/cuda/cuda_driver.hpp"

#include <dlfcn.h>

#include <cstdlib>

#include "capture/inject/interpose.hpp"

namespace ergotune::inject::cuda {
namespace {

Driver load() {
  Driver driver;
  const auto find = [&]<class F>(F*& function, const char* name) {
    function = reinterpret_cast<F*>(Driver::find(name));
  };
  find(driver.cuCtxSynchronize, "cuCtxSynchronize");
  find(driver.cuCtxGetDevice, "cuCtxGetDevice");
  find(driver.cuDeviceGetName, "cuDeviceGetName");
  find(driver.cuMemGetAddressRange_v2, "cuMemGetAddressRange_v2");
  find(driver.cuMemcpyDtoH_v2, "cuMemcpyDtoH_v2");
  find(driver.cuStreamIsCapturing, "cuStreamIsCapturing");
  find(driver.cuEventCreate, "cuEventCreate");
  find(driver.cuEventRecord, "cuEventRecord");
  find(driver.cuEventQuery, "cuEventQuery");
  find(driver.cuEventDestroy_v2, "cuEventDestroy_v2");
  find(driver.cuEventElapsedTime, "cuEventElapsedTime");
  find(driver.cuFuncGetAttribute, "cuFuncGetAttribute");
  find(driver.cuCtxGetCurrent, "cuCtxGetCurrent");
  find(driver.cuMemAlloc_v2, "cuMemAlloc_v2");
  find(driver.cuMemFree_v2, "cuMemFree_v2");
  find(driver.cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync_v2");
  find(driver.cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync_v2");
  find(driver.cuStreamSynchronize, "cuStreamSynchronize");
  find(driver.cuPointerGetAttribute, "cuPointerGetAttribute");
  find(driver.cuModuleLoadDataEx, "cuModuleLoadDataEx");
  find(driver.cuModuleGetFunction, "cuModuleGetFunction");
  find(driver.cuFuncSetAttribute, "cuFuncSetAttribute");
  find(driver.cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode");
  find(driver.cuLaunchKernel, "cuLaunchKernel");
  find(driver.cuFuncGetParamInfo, "cuFuncGetParamInfo");
  find(driver.cuKernelGetParamInfo, "cuKernelGetParamInfo");
  return driver;
}

}  // namespace

const Driver& Driver::get() {
  static const Driver driver = load();
  return driver;
}

void* Driver::find(const char* name) {
  static void* const library = [] {
    const char* named = std::getenv("ERGOTUNE_CUDA");
    return dlopen(named && *named ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  }();
  return library ? own_dlsym(library, name) : nullptr;
}

}  // namespace ergotune::inject::cuda
