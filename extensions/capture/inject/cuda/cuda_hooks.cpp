// The driver's functions that stand in front of the driver's own (LD_PRELOAD): those by which code is loaded and
// looked up, and those that launch. Programs that link the driver find them by name, others through dlsym() and
// cuGetProcAddress(), as the runtime does.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <string>

#include "capture/inject/cuda/cuda_code.hpp"
#include "capture/inject/cuda/cuda_functions.hpp"
#include "capture/inject/cuda/cuda_tuned.hpp"
#include "capture/inject/interpose.hpp"
#include "capture/inject/session.hpp"

#define ERGOTUNE_EXPORT extern "C" __attribute__((visibility("default")))

namespace ergotune::inject::cuda {
namespace {

using Mode = CaptureRequest::Mode;
constexpr int kNotInitialised = 3;

enum class Name : std::size_t {
  GetProcAddress,
  GetProcAddress_v2,
  ModuleLoad,
  ModuleLoadData,
  ModuleLoadDataEx,
  ModuleLoadFatBinary,
  ModuleGetFunction,
  ModuleUnload,
  LibraryLoadData,
  LibraryGetKernel,
  LibraryGetModule,
  LibraryUnload,
  KernelGetFunction,
  CtxDestroy,
  CtxDestroy_v2,
  PrimaryCtxReset,
  PrimaryCtxReset_v2,
  PrimaryCtxRelease,
  PrimaryCtxRelease_v2,
  GraphAddKernelNode,
  GraphAddKernelNode_v2,
  LaunchKernel,
  LaunchKernel_ptsz,
  LaunchKernelEx,
  LaunchKernelEx_ptsz,
  Count
};

struct Hook {
  const char* name;
  void* ours;
  std::atomic<void*> own{nullptr};
};
/// In the order of Name.
Hook& hook(Name name);

/// The driver's own, as the program has found it, or as it is in the driver.
template <class F>
F* own(Name name) {
  Hook& one = hook(name);
  void* found = one.own;
  if (!found) one.own = found = Driver::find(one.name);
  return reinterpret_cast<F*>(found);
}

template <class F>
void quietly(F&& f) noexcept {
  try {
    f();
  } catch (...) {
  }
}

/// The driver's own function is called, and what it made is noted.
template <class F, class Note, class... Arguments>
int call_and_note(Name name, Note&& note, Arguments... arguments) {
  F* function = own<F>(name);
  if (!function) return kNotInitialised;
  const int code = function(arguments...);
  if (code == 0) quietly(note);
  return code;
}

int unload(Name name, Handle code) {
  quietly([&] {
    for (const Handle function : Functions::get().unloaded(code)) forget_tuned(function);
  });
  return call_and_note<int(Handle)>(
      name, [] {}, code);
}

/// What was loaded in a context ends with it.
template <class Which>
int end_context(Name name, Which which) {
  return call_and_note<int(Which)>(
      name, [] { forget_tuned(); }, which);
}

/// The last release ends it.
int release_context(Name name, int device) {
  const auto note = [&] {
    using Query = int(int, unsigned*, int*);
    static auto* const query = reinterpret_cast<Query*>(Driver::find("cuDevicePrimaryCtxGetState"));
    unsigned flags = 0;
    int active = 1;
    if (query && query(device, &flags, &active) == 0 && !active) forget_tuned();
  };
  return call_and_note<int(int)>(name, note, device);
}

int launch(LaunchKernel* function, Call& call, void** extra, bool per_thread, auto&& launch_own) {
  if (per_thread && !call.stream) call.stream = reinterpret_cast<Handle>(2);  // CU_STREAM_PER_THREAD
  call.take_packed(extra);
  std::optional<int> code;
  if (function && Session::get().wants(Mode::run)) quietly([&] { code = launch_tuned(call, function); });
  return code ? *code : launch_own();
}

int launch_kernel(Name name, Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                  unsigned bz, unsigned shared, Handle stream, void** parameters, void** extra) {
  auto* const driver = own<LaunchKernel>(name);
  Call call;
  call.function = function;
  call.stream = stream;
  call.shape = shape_of({gx, gy, gz}, {bx, by, bz});
  call.shared_bytes = shared;
  call.parameters = parameters;
  return launch(driver, call, extra, name == Name::LaunchKernel_ptsz, [&] {
    return driver ? driver(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra) : kNotInitialised;
  });
}

int launch_kernel_ex(Name name, const LaunchConfiguration* configuration, Handle function, void** parameters,
                     void** extra) {
  auto* const driver = own<int(const LaunchConfiguration*, Handle, void**, void**)>(name);
  const auto launch_own = [&] { return driver ? driver(configuration, function, parameters, extra) : kNotInitialised; };
  // clusters, dependent launches and the like are not for another geometry
  if (!configuration || configuration->attribute_count > 0) return launch_own();
  Call call;
  call.function = function;
  call.stream = configuration->stream;
  call.shape = shape_of(configuration->grid, configuration->block);
  call.shared_bytes = configuration->shared_bytes;
  call.parameters = parameters;
  const bool per_thread = name == Name::LaunchKernelEx_ptsz;
  return launch(own<LaunchKernel>(per_thread ? Name::LaunchKernel_ptsz : Name::LaunchKernel), call, extra, per_thread,
                launch_own);
}

/// CUDA_KERNEL_NODE_PARAMS, as CUDA 12 has it; before, it ended at `kernel`.
struct KernelNode {
  Handle function;
  unsigned grid[3], block[3], shared_bytes;
  void** parameters;
  void** extra;
  Handle kernel, context;
};

int add_kernel_node(Name name, Handle* node, Handle graph, const Handle* after, std::size_t count,
                    const KernelNode* given) {
  KernelNode changed{};
  quietly([&] {
    if (!given || !Session::get().wants(Mode::run)) return;
    const bool whole = name == Name::GraphAddKernelNode_v2;
    std::memcpy(&changed, given, whole ? sizeof changed : offsetof(KernelNode, kernel));
    Call call;
    call.function = changed.function ? changed.function : changed.kernel;
    call.shape = shape_of(changed.grid, changed.block);
    call.shared_bytes = changed.shared_bytes;
    const auto tuned = verified_for(call);
    if (!tuned) return;
    changed.function = tuned->function;
    changed.kernel = nullptr;
    std::copy_n(tuned->grid.begin(), 3, changed.grid);
    std::copy_n(tuned->block.begin(), 3, changed.block);
    changed.shared_bytes = tuned->shared_bytes;
    given = &changed;
  });
  return call_and_note<int(Handle*, Handle, const Handle*, std::size_t, const KernelNode*)>(
      name, [] {}, node, graph, after, count, given);
}

/// What cuGetProcAddress found for a name, with what stands in front of it.
void put_in_front(const char* symbol, void** function, int version, std::uint64_t flags) {
  constexpr std::uint64_t kPerThread = 2;
  if (!symbol || !function || !*function) return;
  std::string name = symbol;
  if ((name == "cuGetProcAddress" || name == "cuGraphAddKernelNode") && version >= 12000) name += "_v2";
  if ((flags & kPerThread) && name.starts_with("cuLaunchKernel") && !name.ends_with("_ptsz")) name += "_ptsz";
  *function = function_in_front(name, *function);
}

}  // namespace
}  // namespace ergotune::inject::cuda

using namespace ergotune::inject::cuda;
using ergotune::inject::Session;

ERGOTUNE_EXPORT int cuGetProcAddress(const char* symbol, void** function, int version, std::uint64_t flags) {
  return call_and_note<int(const char*, void**, int, std::uint64_t)>(
      Name::GetProcAddress, [&] { put_in_front(symbol, function, version, flags); }, symbol, function, version, flags);
}
ERGOTUNE_EXPORT int cuGetProcAddress_v2(const char* symbol, void** function, int version, std::uint64_t flags,
                                        int* status) {
  return call_and_note<int(const char*, void**, int, std::uint64_t, int*)>(
      Name::GetProcAddress_v2, [&] { put_in_front(symbol, function, version, flags); }, symbol, function, version,
      flags, status);
}

ERGOTUNE_EXPORT int cuModuleLoad(Handle* module, const char* file) {
  return call_and_note<int(Handle*, const char*)>(
      Name::ModuleLoad, [&] { Functions::get().loaded(*module, nullptr); }, module, file);
}
ERGOTUNE_EXPORT int cuModuleLoadData(Handle* module, const void* image) {
  return call_and_note<int(Handle*, const void*)>(
      Name::ModuleLoadData, [&] { Functions::get().loaded(*module, image); }, module, image);
}
ERGOTUNE_EXPORT int cuModuleLoadDataEx(Handle* module, const void* image, unsigned count, int* options, void** values) {
  return call_and_note<int(Handle*, const void*, unsigned, int*, void**)>(
      Name::ModuleLoadDataEx, [&] { Functions::get().loaded(*module, image); }, module, image, count, options, values);
}
ERGOTUNE_EXPORT int cuModuleLoadFatBinary(Handle* module, const void* image) {
  return call_and_note<int(Handle*, const void*)>(
      Name::ModuleLoadFatBinary, [&] { Functions::get().loaded(*module, image); }, module, image);
}
ERGOTUNE_EXPORT int cuModuleGetFunction(Handle* function, Handle module, const char* name) {
  return call_and_note<int(Handle*, Handle, const char*)>(
      Name::ModuleGetFunction, [&] { Functions::get().found(module, *function, name); }, function, module, name);
}
ERGOTUNE_EXPORT int cuModuleUnload(Handle module) { return unload(Name::ModuleUnload, module); }

ERGOTUNE_EXPORT int cuLibraryLoadData(Handle* library, const void* image, int* options, void** values, unsigned count,
                                      int* library_options, void** library_values, unsigned library_count) {
  return call_and_note<int(Handle*, const void*, int*, void**, unsigned, int*, void**, unsigned)>(
      Name::LibraryLoadData, [&] { Functions::get().loaded(*library, image); }, library, image, options, values, count,
      library_options, library_values, library_count);
}
ERGOTUNE_EXPORT int cuLibraryGetKernel(Handle* kernel, Handle library, const char* name) {
  return call_and_note<int(Handle*, Handle, const char*)>(
      Name::LibraryGetKernel, [&] { Functions::get().found(library, *kernel, name); }, kernel, library, name);
}
ERGOTUNE_EXPORT int cuLibraryGetModule(Handle* module, Handle library) {
  return call_and_note<int(Handle*, Handle)>(
      Name::LibraryGetModule, [&] { Functions::get().same_code(library, *module); }, module, library);
}
ERGOTUNE_EXPORT int cuLibraryUnload(Handle library) { return unload(Name::LibraryUnload, library); }
ERGOTUNE_EXPORT int cuKernelGetFunction(Handle* function, Handle kernel) {
  return call_and_note<int(Handle*, Handle)>(
      Name::KernelGetFunction, [&] { Functions::get().same_function(kernel, *function); }, function, kernel);
}

ERGOTUNE_EXPORT int cuCtxDestroy(Handle context) { return end_context(Name::CtxDestroy, context); }
ERGOTUNE_EXPORT int cuCtxDestroy_v2(Handle context) { return end_context(Name::CtxDestroy_v2, context); }
ERGOTUNE_EXPORT int cuDevicePrimaryCtxReset(int device) { return end_context(Name::PrimaryCtxReset, device); }
ERGOTUNE_EXPORT int cuDevicePrimaryCtxReset_v2(int device) { return end_context(Name::PrimaryCtxReset_v2, device); }
ERGOTUNE_EXPORT int cuDevicePrimaryCtxRelease(int device) { return release_context(Name::PrimaryCtxRelease, device); }
ERGOTUNE_EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  return release_context(Name::PrimaryCtxRelease_v2, device);
}

ERGOTUNE_EXPORT int cuGraphAddKernelNode(Handle* node, Handle graph, const Handle* after, std::size_t count,
                                         const KernelNode* given) {
  return add_kernel_node(Name::GraphAddKernelNode, node, graph, after, count, given);
}
ERGOTUNE_EXPORT int cuGraphAddKernelNode_v2(Handle* node, Handle graph, const Handle* after, std::size_t count,
                                            const KernelNode* given) {
  return add_kernel_node(Name::GraphAddKernelNode_v2, node, graph, after, count, given);
}

ERGOTUNE_EXPORT int cuLaunchKernel(Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, Handle stream, void** parameters, void** extra) {
  return launch_kernel(Name::LaunchKernel, function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}
ERGOTUNE_EXPORT int cuLaunchKernel_ptsz(Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                        unsigned by, unsigned bz, unsigned shared, Handle stream, void** parameters,
                                        void** extra) {
  return launch_kernel(Name::LaunchKernel_ptsz, function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}
ERGOTUNE_EXPORT int cuLaunchKernelEx(const LaunchConfiguration* configuration, Handle function, void** parameters,
                                     void** extra) {
  return launch_kernel_ex(Name::LaunchKernelEx, configuration, function, parameters, extra);
}
ERGOTUNE_EXPORT int cuLaunchKernelEx_ptsz(const LaunchConfiguration* configuration, Handle function, void** parameters,
                                          void** extra) {
  return launch_kernel_ex(Name::LaunchKernelEx_ptsz, configuration, function, parameters, extra);
}

namespace ergotune::inject {
namespace cuda {
namespace {

std::array<Hook, static_cast<std::size_t>(Name::Count)>& hooks() {
  const auto ours = [](auto* function) { return reinterpret_cast<void*>(function); };
  static std::array<Hook, static_cast<std::size_t>(Name::Count)> all{
      {{"cuGetProcAddress", ours(cuGetProcAddress)},
       {"cuGetProcAddress_v2", ours(cuGetProcAddress_v2)},
       {"cuModuleLoad", ours(cuModuleLoad)},
       {"cuModuleLoadData", ours(cuModuleLoadData)},
       {"cuModuleLoadDataEx", ours(cuModuleLoadDataEx)},
       {"cuModuleLoadFatBinary", ours(cuModuleLoadFatBinary)},
       {"cuModuleGetFunction", ours(cuModuleGetFunction)},
       {"cuModuleUnload", ours(cuModuleUnload)},
       {"cuLibraryLoadData", ours(cuLibraryLoadData)},
       {"cuLibraryGetKernel", ours(cuLibraryGetKernel)},
       {"cuLibraryGetModule", ours(cuLibraryGetModule)},
       {"cuLibraryUnload", ours(cuLibraryUnload)},
       {"cuKernelGetFunction", ours(cuKernelGetFunction)},
       {"cuCtxDestroy", ours(cuCtxDestroy)},
       {"cuCtxDestroy_v2", ours(cuCtxDestroy_v2)},
       {"cuDevicePrimaryCtxReset", ours(cuDevicePrimaryCtxReset)},
       {"cuDevicePrimaryCtxReset_v2", ours(cuDevicePrimaryCtxReset_v2)},
       {"cuDevicePrimaryCtxRelease", ours(cuDevicePrimaryCtxRelease)},
       {"cuDevicePrimaryCtxRelease_v2", ours(cuDevicePrimaryCtxRelease_v2)},
       {"cuGraphAddKernelNode", ours(cuGraphAddKernelNode)},
       {"cuGraphAddKernelNode_v2", ours(cuGraphAddKernelNode_v2)},
       {"cuLaunchKernel", ours(cuLaunchKernel)},
       {"cuLaunchKernel_ptsz", ours(cuLaunchKernel_ptsz)},
       {"cuLaunchKernelEx", ours(cuLaunchKernelEx)},
       {"cuLaunchKernelEx_ptsz", ours(cuLaunchKernelEx_ptsz)}}};
  return all;
}
Hook& hook(Name name) { return hooks()[static_cast<std::size_t>(name)]; }

}  // namespace
}  // namespace cuda

void* function_in_front(std::string_view name, void* own) noexcept {
  try {
    if (void* nvrtc = cuda::nvrtc_in_front(name)) return nvrtc;
    for (std::size_t i = 0; i < cuda::hooks().size(); ++i) {
      cuda::Hook& one = cuda::hooks()[i];
      if (name != one.name || own == one.ours) continue;
      const bool launches = i >= static_cast<std::size_t>(cuda::Name::GraphAddKernelNode);
      const CaptureRequest::Mode mode = Session::get().wishes().mode;
      if (mode == CaptureRequest::Mode::nothing || (launches && mode != CaptureRequest::Mode::run)) return own;
      // of the first driver that is looked into; another's is left alone
      void* none = nullptr;
      if (!one.own.compare_exchange_strong(none, own) && none != own) return own;
      return one.ours;
    }
  } catch (...) {
  }
  return own;
}

}  // namespace ergotune::inject
