// The library for HIP programs, in front of libamdhip64 (LD_PRELOAD): the functions that CUDA's driver does not have,
// and what the code that hipcc built into a program registers.
#include "capture/inject/gpu/gpu_hooks.hpp"

namespace ergotune::inject {

const char* interface_name() { return "hip"; }

namespace gpu {
namespace {

struct Extents {
  unsigned x, y, z;
};
using LaunchHost = int(const void*, Extents, Extents, void**, std::size_t, Handle);
using LaunchHostEvents = int(const void*, Extents, Extents, void**, std::size_t, Handle, Handle, Handle, int);
using LaunchThreads = int(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, std::size_t, Handle,
                          void**, void**, Handle, Handle, unsigned);

LaunchKernel* module_launch() {
  static OwnFunction& hook = own_function("hipModuleLaunchKernel");
  return hook.get<LaunchKernel>();
}

/// A kernel that hipcc built in is launched by the address of a function of the host.
int launch_host(const void* function, Extents grid, Extents block, void** parameters, std::size_t shared, Handle stream,
                auto&& launch_own) {
  Call call{const_cast<void*>(function), stream, shape_of({grid.x, grid.y, grid.z}, {block.x, block.y, block.z}),
            shared, parameters};
  return launch(call, nullptr, module_launch(), OwnLaunch(launch_own));
}
int launch_host(OwnFunction& hook, bool per_thread, const void* function, Extents grid, Extents block,
                void** parameters, std::size_t shared, Handle stream) {
  auto* const driver = hook.get<LaunchHost>();
  return launch_host(function, grid, block, parameters, shared, stream_of(stream, per_thread), [&] {
    return driver ? driver(function, grid, block, parameters, shared, stream) : kNotInitialised;
  });
}

}  // namespace
}  // namespace gpu
}  // namespace ergotune::inject

using namespace ergotune::inject::gpu;

ERGOTUNE_EXPORT int hipGetProcAddress(const char* symbol, void** function, int version, std::uint64_t flags,
                                      int* status) {
  const auto note = [&] {
    constexpr std::uint64_t kPerThread = 2;
    if (!symbol || !function || !*function) return;
    const bool own_stream = (flags & kPerThread) && std::string(symbol) == "hipLaunchKernel";
    *function = function_in_front(own_stream ? "hipLaunchKernel_spt" : symbol, *function);
  };
  return call_and_note("hipGetProcAddress", note, symbol, function, version, flags, status);
}
ERGOTUNE_EXPORT int hipDeviceReset() { return end_context("hipDeviceReset"); }

ERGOTUNE_EXPORT void** __hipRegisterFatBinary(const void* image) {
  auto* const driver = own_function("__hipRegisterFatBinary").get<void**(const void*)>();
  void** const modules = driver ? driver(image) : nullptr;
  if (modules && image) quietly([&] { Functions::get().loaded(modules, image); });
  return modules;
}
ERGOTUNE_EXPORT void __hipRegisterFunction(void** modules, const void* function, char* symbol, const char* name,
                                           unsigned threads, void* thread, void* index, void* block, void* grid,
                                           int* size) {
  auto* const driver =
      own_function("__hipRegisterFunction")
          .get<void(void**, const void*, char*, const char*, unsigned, void*, void*, void*, void*, int*)>();
  if (driver) driver(modules, function, symbol, name, threads, thread, index, block, grid, size);
  if (name) quietly([&] { Functions::get().found(modules, const_cast<void*>(function), name); });
}
ERGOTUNE_EXPORT void __hipUnregisterFatBinary(void** modules) {
  auto* const driver = own_function("__hipUnregisterFatBinary").get<void(void**)>();
  quietly([&] {
    for (const Handle function : Functions::get().unloaded(modules)) forget_tuned(function);
  });
  if (driver) driver(modules);
}

ERGOTUNE_EXPORT int hipModuleLaunchKernel(Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                          unsigned by, unsigned bz, unsigned shared, Handle stream, void** parameters,
                                          void** extra) {
  auto* const driver = module_launch();
  const auto launch_own = [&] {
    return driver ? driver(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra) : kNotInitialised;
  };
  Call call{function, stream, shape_of({gx, gy, gz}, {bx, by, bz}), shared, parameters};
  return launch(call, extra, driver, OwnLaunch(launch_own));
}
/// Takes threads in place of blocks, and events.
ERGOTUNE_EXPORT int hipExtModuleLaunchKernel(Handle function, unsigned tx, unsigned ty, unsigned tz, unsigned bx,
                                             unsigned by, unsigned bz, std::size_t shared, Handle stream,
                                             void** parameters, void** extra, Handle start, Handle stop,
                                             unsigned flags) {
  static OwnFunction& hook = own_function("hipExtModuleLaunchKernel");
  auto* const driver = hook.get<LaunchThreads>();
  const auto launch_own = [&] {
    return driver ? driver(function, tx, ty, tz, bx, by, bz, shared, stream, parameters, extra, start, stop, flags)
                  : kNotInitialised;
  };
  const bool whole = bx && by && bz && tx % bx == 0 && ty % by == 0 && tz % bz == 0;
  if (start || stop || !whole) return launch_own();
  Call call{function, stream, shape_of({tx / bx, ty / by, tz / bz}, {bx, by, bz}), shared, parameters};
  return launch(call, extra, module_launch(), OwnLaunch(launch_own));
}
ERGOTUNE_EXPORT int hipLaunchKernel(const void* function, Extents grid, Extents block, void** parameters,
                                    std::size_t shared, Handle stream) {
  static OwnFunction& hook = own_function("hipLaunchKernel");
  return launch_host(hook, false, function, grid, block, parameters, shared, stream);
}
ERGOTUNE_EXPORT int hipLaunchKernel_spt(const void* function, Extents grid, Extents block, void** parameters,
                                        std::size_t shared, Handle stream) {
  static OwnFunction& hook = own_function("hipLaunchKernel_spt");
  return launch_host(hook, true, function, grid, block, parameters, shared, stream);
}
ERGOTUNE_EXPORT int hipExtLaunchKernel(const void* function, Extents grid, Extents block, void** parameters,
                                       std::size_t shared, Handle stream, Handle start, Handle stop, int flags) {
  static OwnFunction& hook = own_function("hipExtLaunchKernel");
  auto* const driver = hook.get<LaunchHostEvents>();
  const auto launch_own = [&] {
    return driver ? driver(function, grid, block, parameters, shared, stream, start, stop, flags) : kNotInitialised;
  };
  if (start || stop) return launch_own();
  return launch_host(function, grid, block, parameters, shared, stream, launch_own);
}
