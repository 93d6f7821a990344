#include "capture/inject/gpu/gpu_driver.hpp"

#include <cstdlib>

#include "capture/inject/interpose.hpp"
#ifdef ERGOTUNE_INJECT_HIP
#include "device/hip/hip_names.hpp"
#endif

namespace ergotune::inject::gpu {
namespace {

void* driver_library() {
  const char* named = std::getenv(ERGOTUNE_NAMED("ERGOTUNE_CUDA", "ERGOTUNE_HIP"));
  if (named && *named) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
  if (void* loaded = loaded_library(ERGOTUNE_NAMED("libcuda.so", "libamdhip64.so"))) return loaded;
  return ERGOTUNE_NAMED(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), nullptr);
}

}  // namespace

FoundFunction found(const char* name) {
#ifdef ERGOTUNE_INJECT_HIP
  name = hip::hip_name(name);
#endif
  return {name ? Driver::find(name) : nullptr};
}

const Driver& Driver::get() {
  static const Driver driver;
  return driver;
}

void* Driver::find(const char* name) {
  const bool of_compiler = std::string_view(name).find("rtc") != std::string_view::npos;
  if (of_compiler) {
    if (void* next = own_dlsym(RTLD_NEXT, name)) return next;
    for (const char* file : {ERGOTUNE_NAMED("libnvrtc.so", "libhiprtc.so"), "libamdhip64.so"})
      if (void* library = loaded_library(file))
        if (void* function = own_dlsym(library, name)) return function;
    return nullptr;
  }
  static void* const library = driver_library();
  return library ? own_dlsym(library, name) : nullptr;
}

}  // namespace ergotune::inject::gpu
