// The functions that only CUDA's driver has.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "capture/inject/gpu/gpu_hooks.hpp"

namespace ergotune::inject::gpu {
namespace {

/// cuLaunchKernel and its variant whose stream 0 is the thread's.
int launch_kernel(OwnFunction& hook, bool per_thread, Handle function, const unsigned (&grid)[3],
                  const unsigned (&block)[3], unsigned shared, Handle stream, void** parameters, void** extra) {
  auto* const driver = hook.get<LaunchKernel>();
  const auto launch_own = [&] {
    return driver ? driver(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream,
                           parameters, extra)
                  : kNotInitialised;
  };
  Call call{function, stream_of(stream, per_thread), shape_of(grid, block), shared, parameters};
  return launch(call, extra, driver, OwnLaunch(launch_own));
}

int launch_kernel_ex(OwnFunction& hook, OwnFunction& plain, bool per_thread, const LaunchConfiguration* configuration,
                     Handle function, void** parameters, void** extra) {
  auto* const driver = hook.get<int(const LaunchConfiguration*, Handle, void**, void**)>();
  const auto launch_own = [&] { return driver ? driver(configuration, function, parameters, extra) : kNotInitialised; };
  // clusters, dependent launches and the like are not for another geometry
  if (!configuration || configuration->attribute_count > 0) return launch_own();
  Call call{function, stream_of(configuration->stream, per_thread), shape_of(configuration->grid, configuration->block),
            configuration->shared_bytes, parameters};
  return launch(call, extra, plain.get<LaunchKernel>(), OwnLaunch(launch_own));
}

/// CUDA_KERNEL_NODE_PARAMS, as CUDA 12 has it; before, it ended at `kernel`.
struct KernelNode {
  Handle function;
  unsigned grid[3], block[3], shared_bytes;
  void** parameters;
  void** extra;
  Handle kernel, context;
};

int add_kernel_node(const char* name, bool whole, Handle* node, Handle graph, const Handle* after, std::size_t count,
                    const KernelNode* given) {
  KernelNode changed{};
  quietly([&] {
    if (!given || !Session::get().wants(CaptureRequest::Mode::run)) return;
    std::memcpy(&changed, given, whole ? sizeof changed : offsetof(KernelNode, kernel));
    const auto tuned = verified_for({changed.function ? changed.function : changed.kernel, nullptr,
                                     shape_of(changed.grid, changed.block), changed.shared_bytes});
    if (!tuned) return;
    changed.function = tuned->function;
    changed.kernel = nullptr;
    std::copy_n(tuned->grid.begin(), 3, changed.grid);
    std::copy_n(tuned->block.begin(), 3, changed.block);
    changed.shared_bytes = tuned->shared_bytes;
    given = &changed;
  });
  return call_and_note(
      name, [] {}, node, graph, after, count, given);
}

/// What cuGetProcAddress found for a name, with what stands in front of it.
void put_found_in_front(const char* symbol, void** function, int version, std::uint64_t flags) {
  constexpr std::uint64_t kPerThread = 2;
  if (!symbol || !function || !*function) return;
  std::string name = symbol;
  if ((name == "cuGetProcAddress" || name == "cuGraphAddKernelNode") && version >= 12000) name += "_v2";
  if ((flags & kPerThread) && name.starts_with("cuLaunchKernel") && !name.ends_with("_ptsz")) name += "_ptsz";
  *function = function_in_front(name.c_str(), *function);
}

}  // namespace
}  // namespace ergotune::inject::gpu

using namespace ergotune::inject::gpu;

ERGOTUNE_EXPORT int cuGetProcAddress(const char* symbol, void** function, int version, std::uint64_t flags) {
  return call_and_note(
      "cuGetProcAddress", [&] { put_found_in_front(symbol, function, version, flags); }, symbol, function, version,
      flags);
}
ERGOTUNE_EXPORT int cuGetProcAddress_v2(const char* symbol, void** function, int version, std::uint64_t flags,
                                        int* status) {
  return call_and_note(
      "cuGetProcAddress_v2", [&] { put_found_in_front(symbol, function, version, flags); }, symbol, function, version,
      flags, status);
}

ERGOTUNE_EXPORT int cuModuleLoadFatBinary(Handle* module, const void* image) {
  return call_and_note(
      "cuModuleLoadFatBinary", [&] { Functions::get().loaded(*module, image); }, module, image);
}
ERGOTUNE_EXPORT int cuLibraryLoadData(Handle* library, const void* image, int* options, void** values, unsigned count,
                                      int* library_options, void** library_values, unsigned library_count) {
  return call_and_note(
      "cuLibraryLoadData", [&] { Functions::get().loaded(*library, image); }, library, image, options, values, count,
      library_options, library_values, library_count);
}
ERGOTUNE_EXPORT int cuLibraryGetKernel(Handle* kernel, Handle library, const char* name) {
  return call_and_note(
      "cuLibraryGetKernel", [&] { Functions::get().found(library, *kernel, name); }, kernel, library, name);
}
ERGOTUNE_EXPORT int cuLibraryGetModule(Handle* module, Handle library) {
  return call_and_note(
      "cuLibraryGetModule", [&] { Functions::get().same_code(library, *module); }, module, library);
}
ERGOTUNE_EXPORT int cuLibraryUnload(Handle library) { return unload("cuLibraryUnload", library); }
ERGOTUNE_EXPORT int cuKernelGetFunction(Handle* function, Handle kernel) {
  return call_and_note(
      "cuKernelGetFunction", [&] { Functions::get().same_function(kernel, *function); }, function, kernel);
}

ERGOTUNE_EXPORT int cuCtxDestroy_v2(Handle context) { return end_context("cuCtxDestroy_v2", context); }
ERGOTUNE_EXPORT int cuDevicePrimaryCtxReset_v2(int device) { return end_context("cuDevicePrimaryCtxReset_v2", device); }
ERGOTUNE_EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  return release_context("cuDevicePrimaryCtxRelease_v2", device);
}

ERGOTUNE_EXPORT int cuGraphAddKernelNode(Handle* node, Handle graph, const Handle* after, std::size_t count,
                                         const KernelNode* given) {
  return add_kernel_node("cuGraphAddKernelNode", false, node, graph, after, count, given);
}
ERGOTUNE_EXPORT int cuGraphAddKernelNode_v2(Handle* node, Handle graph, const Handle* after, std::size_t count,
                                            const KernelNode* given) {
  return add_kernel_node("cuGraphAddKernelNode_v2", true, node, graph, after, count, given);
}

ERGOTUNE_EXPORT int cuLaunchKernel(Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, Handle stream, void** parameters, void** extra) {
  static OwnFunction& hook = own_function("cuLaunchKernel");
  return launch_kernel(hook, false, function, {gx, gy, gz}, {bx, by, bz}, shared, stream, parameters, extra);
}
ERGOTUNE_EXPORT int cuLaunchKernel_ptsz(Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                        unsigned by, unsigned bz, unsigned shared, Handle stream, void** parameters,
                                        void** extra) {
  static OwnFunction& hook = own_function("cuLaunchKernel_ptsz");
  return launch_kernel(hook, true, function, {gx, gy, gz}, {bx, by, bz}, shared, stream, parameters, extra);
}
ERGOTUNE_EXPORT int cuLaunchKernelEx(const LaunchConfiguration* configuration, Handle function, void** parameters,
                                     void** extra) {
  static OwnFunction &hook = own_function("cuLaunchKernelEx"), &plain = own_function("cuLaunchKernel");
  return launch_kernel_ex(hook, plain, false, configuration, function, parameters, extra);
}
ERGOTUNE_EXPORT int cuLaunchKernelEx_ptsz(const LaunchConfiguration* configuration, Handle function, void** parameters,
                                          void** extra) {
  static OwnFunction &hook = own_function("cuLaunchKernelEx_ptsz"), &plain = own_function("cuLaunchKernel_ptsz");
  return launch_kernel_ex(hook, plain, true, configuration, function, parameters, extra);
}
