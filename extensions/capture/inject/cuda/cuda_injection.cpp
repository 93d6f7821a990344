// The library for CUDA programs: the driver loads what CUDA_INJECTION64_PATH names and calls InitializeInjection; from
// then on CUPTI reports every launch and every code object.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "capture/inject/cuda/cuda_capture.hpp"
#include "capture/inject/cuda/cuda_code.hpp"
#include "capture/inject/cuda/cuda_functions.hpp"
#include "capture/inject/cuda/cuda_timing.hpp"
#include "capture/inject/session.hpp"

#define ERGOTUNE_EXPORT extern "C" __attribute__((visibility("default")))

namespace ergotune::inject {

const char* interface_name() { return "cuda"; }

namespace cuda {
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

/// What the thread is in the middle of: calls of our own are not the program's.
thread_local bool busy = false;
struct Busy {
  Busy() { busy = true; }
  ~Busy() { busy = false; }
};

/// A launch between its two callbacks.
struct InFlight {
  std::shared_ptr<KernelLog::Entry> entry;
  std::optional<CudaCapture> capture;
  Handle started = nullptr, stream = nullptr;
};
thread_local std::optional<InFlight> in_flight;

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
  if (per_thread && !call.stream) call.stream = reinterpret_cast<Handle>(2);  // CU_STREAM_PER_THREAD
  return call;
}

std::shared_ptr<KernelLog::Entry> entry_of(Handle function, const std::string& symbol) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::pair<Handle, std::string>, std::shared_ptr<KernelLog::Entry>>;
  const std::lock_guard lock(mutex);
  auto& entry = (*known)[{function, symbol}];
  if (!entry) {
    const kernel_source::Demangled name = kernel_source::demangled(symbol);
    entry = KernelLog::get().entry(display_name(name), Functions::get().identity_of(function, symbol), "");
    entry->also = {name.name, symbol};
  }
  return entry;
}

void before_launch(std::uint32_t callback, const CallbackData& data) {
  const Call call = call_of(callback, data);
  if (call.symbol.empty() || !call.function) return;
  in_flight.emplace();
  in_flight->entry = entry_of(call.function, call.symbol);
  in_flight->stream = call.stream;
  KernelLog& log = KernelLog::get();
  const bool first = in_flight->entry->launches == 0;
  const std::uint64_t launch =
      log.count(*in_flight->entry, call.shape, first ? description_of(arguments_of(call)) : std::string());
  if (log.claims(*in_flight->entry, launch)) {
    try {
      in_flight->capture.emplace(call);
    } catch (const std::exception& error) {
      log.refuse(*in_flight->entry, error.what());
      log.unclaim_all();
    }
  }
  in_flight->started = start_timing(call.stream);
}

void after_launch(const CallbackData& data) {
  if (!in_flight) return;
  InFlight launch = std::move(*in_flight);
  in_flight.reset();
  KernelLog& log = KernelLog::get();
  stop_timing(launch.entry, launch.started, launch.stream);
  const int code = data.result ? *static_cast<const int*>(data.result) : 0;
  if (launch.capture && code == 0) {
    const std::string folder = next_capture_folder();
    try {
      capture::Message message{"captured",
                               launch.entry->name,
                               launch.entry->hash,
                               launch.entry->options,
                               folder,
                               std::to_string(launch.entry->number)};
      for (std::string& note : launch.capture->finish(folder)) message.push_back(std::move(note));
      Session::get().tell(message);
      log.refuse(*launch.entry, "");
    } catch (const std::exception& error) {
      log.refuse(*launch.entry, error.what());
      log.unclaim_all();
    }
  }
  log.report(false);
}

void on_event(void*, int domain, std::uint32_t callback, const void* data) noexcept {
  if (!data) return;
  try {
    if (domain == kResource) {
      // also while we ask: the driver loads a kernel's code at the first query of its arguments
      const auto& resource = *static_cast<const ResourceData*>(data);
      if (callback == kModuleLoaded && resource.descriptor && Session::get().wants(CaptureRequest::Mode::capture))
        Code::get().add_code_object(resource.descriptor->code, resource.descriptor->size);
    } else if (domain == kDriverApi && !busy) {
      const Busy guard;
      const auto& call = *static_cast<const CallbackData*>(data);
      if (call.site == 0)
        before_launch(callback, call);
      else
        after_launch(call);
    }
  } catch (...) {
  }
}

void at_exit() {
  const Busy guard;
  try {
    collect_times();
    KernelLog::get().report(true);
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
    return session.tell(
        {"trouble", "CUPTI, by which CUDA programs are watched, cannot be opened; ERGOTUNE_CUPTI names libcupti.so"});
  using Subscribe = int(Handle*, void (*)(void*, int, std::uint32_t, const void*), void*);
  using Enable = int(std::uint32_t, Handle, int, std::uint32_t);
  auto* subscribe = reinterpret_cast<Subscribe*>(dlsym(library, "cuptiSubscribe"));
  auto* enable = reinterpret_cast<Enable*>(dlsym(library, "cuptiEnableCallback"));
  Handle subscriber = nullptr;
  const int code = subscribe && enable ? subscribe(&subscriber, on_event, nullptr) : -1;
  if (code != 0)
    return session.tell(
        {"trouble", "CUPTI takes no subscriber (" + std::to_string(code) + "): 39 is another profiler in the program"});
  (void)enable(1, subscriber, kResource, kModuleLoaded);
  for (const std::uint32_t callback : {kLaunchKernel, kLaunchKernelPerThread, kLaunchCooperative,
                                       kLaunchCooperativePerThread, kLaunchKernelEx, kLaunchKernelExPerThread})
    (void)enable(1, subscriber, kDriverApi, callback);
  (void)Driver::get();
  std::atexit(at_exit);
}

}  // namespace
}  // namespace cuda
}  // namespace ergotune::inject

ERGOTUNE_EXPORT int InitializeInjection() {
  static std::once_flag once;
  try {
    std::call_once(once, ergotune::inject::cuda::begin);
  } catch (...) {
  }
  return 1;
}
