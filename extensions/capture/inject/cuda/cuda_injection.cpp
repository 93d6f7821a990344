// The library for CUDA programs: the driver loads what CUDA_INJECTION64_PATH names and calls InitializeInjection; from
// then on CUPTI reports every launch and every code object.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "capture/inject/gpu/gpu_hooks.hpp"

namespace ergotune::inject {

const char* interface_name() { return "cuda"; }

namespace gpu {
namespace {

// From CUPTI's headers (CUDA 12 and 13): cupti_callbacks.h, cupti_driver_cbid.h, generated_cuda_meta.h.
enum Domain { kDriverApi = 1, kResource = 3 };
enum Callback : std::uint32_t {
  kModuleLoaded = 6,  // of the resource domain
  kLaunchKernel = 307,
  kLaunchKernelPerThread = 442,
  kLaunchCooperative = 477,
  kLaunchCooperativePerThread = 478,
  kLaunchKernelEx = 652,
  kLaunchKernelExPerThread = 653
};
struct CallbackData {
  int site;  ///< 0: before the function, 1: behind it
  const char* function_name;
  const void* parameters;
  void* result;
  const char* symbol;
  Handle context;
  std::uint32_t context_number;
  std::uint64_t* correlation_data;
  std::uint32_t correlation;
};
struct ModuleData {
  std::uint32_t number;
  std::size_t size;
  const char* code;
};
struct ResourceData {
  Handle context;
  Handle stream;
  const ModuleData* descriptor;
};
struct LaunchParameters {
  Handle function;
  unsigned grid[3], block[3], shared_bytes;
  Handle stream;
  void** parameters;
  void** extra;
};
struct LaunchExParameters {
  const LaunchConfiguration* configuration;
  Handle function;
  void** parameters;
  void** extra;
};

constexpr std::size_t kMostKept = std::size_t{2} << 30;

struct Kept {
  std::mutex mutex;
  std::vector<std::string> objects;
  std::size_t bytes = 0;
};
Kept& kept() {
  static Kept* const all = new Kept;
  return *all;
}

void add_code_object(const void* bytes, std::size_t size) {
  if (!bytes || size == 0) return;
  Kept& all = kept();
  const std::lock_guard lock(all.mutex);
  if (all.bytes + size > kMostKept) return;
  all.bytes += size;
  all.objects.emplace_back(static_cast<const char*>(bytes), size);
}

Call call_of(std::uint32_t callback, const CallbackData& data) {
  Call call;
  if (data.symbol) call.symbol = data.symbol;
  const bool per_thread = callback == kLaunchKernelPerThread || callback == kLaunchCooperativePerThread ||
                          callback == kLaunchKernelExPerThread;
  if (callback == kLaunchKernelEx || callback == kLaunchKernelExPerThread) {
    const auto& given = *static_cast<const LaunchExParameters*>(data.parameters);
    call.function = given.function;
    call.parameters = given.parameters;
    call.shape = shape_of(given.configuration->grid, given.configuration->block);
    call.shared_bytes = given.configuration->shared_bytes;
    call.stream = given.configuration->stream;
    constexpr int kCluster = 4;
    for (unsigned i = 0; i < given.configuration->attribute_count; ++i)
      if (const auto& [number, value] = given.configuration->attributes[i]; number == kCluster)
        std::copy_n(value, 3, call.cluster.begin());
    call.take_packed(given.extra);
  } else {
    const auto& given = *static_cast<const LaunchParameters*>(data.parameters);
    call.function = given.function;
    call.parameters = given.parameters;
    call.shape = shape_of(given.grid, given.block);
    call.shared_bytes = given.shared_bytes;
    call.stream = given.stream;
    const bool cooperative =
        callback == kLaunchCooperative || callback == kLaunchCooperativePerThread;  // has no `extra`
    if (!cooperative) call.take_packed(given.extra);
  }
  call.stream = stream_of(call.stream, per_thread);
  return call;
}

void on_event(void*, int domain, std::uint32_t callback, const void* data) noexcept {
  if (!data) return;
  try {
    if (domain == kResource) {
      // also while we ask: the driver loads a kernel's code at the first query of its arguments
      const auto& resource = *static_cast<const ResourceData*>(data);
      if (callback == kModuleLoaded && resource.descriptor && Session::get().wants(CaptureRequest::Mode::capture))
        add_code_object(resource.descriptor->code, resource.descriptor->size);
    } else if (domain == kDriverApi && !Busy::now) {
      const Busy guard;
      const auto& call = *static_cast<const CallbackData*>(data);
      if (call.site == 0)
        before_launch(call_of(callback, call));
      else
        after_launch(call.result ? *static_cast<const int*>(call.result) : 0);
    }
  } catch (...) {
  }
}

/// CUPTI, by the path that the command found it at, or wherever the loader does.
void* open_cupti() {
  const char* const names[] = {std::getenv("ERGOTUNE_LAYER_CUPTI"), "libcupti.so.13", "libcupti.so.12", "libcupti.so"};
  for (const char* name : names) {
    if (!name || !*name) continue;
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

void begin() {
  Session& session = Session::get();
  if (!session.wants(CaptureRequest::Mode::capture) && !session.wants(CaptureRequest::Mode::list)) return;
  void* library = open_cupti();
  if (!library)
    return session.send(
        {"note", "CUPTI, by which CUDA programs are watched, cannot be opened; ERGOTUNE_CUPTI names libcupti.so"});
  using Subscribe = int(Handle*, void (*)(void*, int, std::uint32_t, const void*), void*);
  using Enable = int(std::uint32_t, Handle, int, std::uint32_t);
  auto* subscribe = reinterpret_cast<Subscribe*>(dlsym(library, "cuptiSubscribe"));
  auto* enable = reinterpret_cast<Enable*>(dlsym(library, "cuptiEnableCallback"));
  Handle subscriber = nullptr;
  const int code = subscribe && enable ? subscribe(&subscriber, on_event, nullptr) : -1;
  if (code != 0)
    return session.send(
        {"note", "CUPTI takes no subscriber (" + std::to_string(code) + "): 39 is another profiler in the program"});
  (void)enable(1, subscriber, kResource, kModuleLoaded);
  for (const std::uint32_t callback : {kLaunchKernel, kLaunchKernelPerThread, kLaunchCooperative,
                                       kLaunchCooperativePerThread, kLaunchKernelEx, kLaunchKernelExPerThread})
    (void)enable(1, subscriber, kDriverApi, callback);
  (void)Driver::get();
  std::atexit(end_watch);
}

}  // namespace

std::string code_object_of(Handle, const std::string& symbol) {
  Kept& all = kept();
  const std::lock_guard lock(all.mutex);
  // the section that every kernel has; its name ends with a zero
  const std::string section = ".text." + symbol + '\0';
  for (auto object = all.objects.rbegin(); object != all.objects.rend(); ++object)
    if (::memmem(object->data(), object->size(), section.data(), section.size())) return *object;
  return {};
}

int attribute_of(Handle function, int attribute) {
  const Driver& driver = Driver::get();
  int value = 0, device = 0;
  if (driver.cuFuncGetAttribute && driver.cuFuncGetAttribute(&value, attribute, function) == 0) return value;
  // a launch may name a kernel of a library, as cuBLAS does
  const bool known = driver.cuKernelGetAttribute && driver.cuCtxGetDevice && driver.cuCtxGetDevice(&device) == 0 &&
                     driver.cuKernelGetAttribute(&value, attribute, function, device) == 0;
  return known ? value : 0;
}

std::vector<ParameterPlace> parameters_of(Handle function) {
  const Driver& driver = Driver::get();
  std::vector<ParameterPlace> places;
  for (std::size_t i = 0; i < 4096; ++i) {
    ParameterPlace place;
    const bool known =
        (driver.cuFuncGetParamInfo && driver.cuFuncGetParamInfo(function, i, &place.offset, &place.size) == 0) ||
        (driver.cuKernelGetParamInfo && driver.cuKernelGetParamInfo(function, i, &place.offset, &place.size) == 0);
    if (!known) break;
    places.push_back(place);
  }
  return places;
}

}  // namespace gpu
}  // namespace ergotune::inject

ERGOTUNE_EXPORT int InitializeInjection() {
  static std::once_flag once;
  try {
    std::call_once(once, ergotune::inject::gpu::begin);
  } catch (...) {
  }
  return 1;
}
