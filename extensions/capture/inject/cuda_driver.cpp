#include "capture/inject/cuda_driver.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace ergotune::inject::cuda {
namespace {

Driver load() {
  Driver driver;
  const char* named = std::getenv("ERGOTUNE_CUDA");
  void* library = dlopen(named && *named ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return driver;
  const auto find = [&]<class F>(F*& function, const char* name) {
    function = reinterpret_cast<F*>(dlsym(library, name));
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
  find(driver.cuFuncGetParamInfo, "cuFuncGetParamInfo");
  find(driver.cuKernelGetParamInfo, "cuKernelGetParamInfo");
  return driver;
}

}  // namespace

const Driver& Driver::get() {
  static const Driver driver = load();
  return driver;
}

}  // namespace ergotune::inject::cuda
