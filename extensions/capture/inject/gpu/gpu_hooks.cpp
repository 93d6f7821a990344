// The functions that CUDA's driver and HIP's have in common.
#include "capture/inject/gpu/gpu_hooks.hpp"

#define OURS(name) ERGOTUNE_NAMED(cu##name, hip##name)
#define NAME(name) ERGOTUNE_NAMED("cu" #name, "hip" #name)

namespace ergotune::inject {
namespace gpu {
int release_context(const char* name, int device) {
  const auto note = [&] {
    using Query = int(int, unsigned*, int*);
    static auto* const query = reinterpret_cast<Query*>(Driver::find(NAME(DevicePrimaryCtxGetState)));
    unsigned flags = 0;
    int active = 1;
    if (query && query(device, &flags, &active) == 0 && !active) forget_tuned();
  };
  return call_and_note(name, note, device);
}

int unload(const char* name, Handle code) {
  quietly([&] {
    for (const Handle function : Functions::get().unloaded(code)) forget_tuned(function);
  });
  return call_and_note(
      name, [] {}, code);
}

int launch(Call& call, void** extra, LaunchKernel* driver, OwnLaunch own) {
  std::optional<int> code;
  call.take_packed(extra);
  // HIP may call its own functions by their names; CUPTI reports the launches of CUDA
  constexpr bool kHip = ERGOTUNE_NAMED(false, true);
  if (kHip && Busy::now) return own();
  std::optional<Busy> guard;
  if (kHip) guard.emplace();
  if (Session::get().wants(CaptureRequest::Mode::run)) {
    if (driver) quietly([&] { code = launch_tuned(call, driver, own); });
  } else if (kHip) {
    return watch_launch(call, own);
  }
  return code ? *code : own();
}

}  // namespace gpu

void* find_function(const char* name) { return gpu::Driver::find(name); }

bool stands_in_front(std::string_view name) {
  const CaptureRequest::Mode mode = Session::get().wishes().mode;
  // CUPTI reports the launches that are captured
  const bool launches = name.starts_with("cuLaunch") || name.starts_with("cuGraph");
  return launches ? mode == CaptureRequest::Mode::run : mode != CaptureRequest::Mode::nothing;
}

}  // namespace ergotune::inject

using namespace ergotune::inject::gpu;

ERGOTUNE_EXPORT int OURS(ModuleLoad)(Handle* module, const char* file) {
  return call_and_note(
      NAME(ModuleLoad), [&] { Functions::get().loaded_file(*module, file); }, module, file);
}
ERGOTUNE_EXPORT int OURS(ModuleLoadData)(Handle* module, const void* image) {
  return call_and_note(
      NAME(ModuleLoadData), [&] { Functions::get().loaded(*module, image); }, module, image);
}
ERGOTUNE_EXPORT int OURS(ModuleLoadDataEx)(Handle* module, const void* image, unsigned count, int* options,
                                           void** values) {
  return call_and_note(
      NAME(ModuleLoadDataEx), [&] { Functions::get().loaded(*module, image); }, module, image, count, options, values);
}
ERGOTUNE_EXPORT int OURS(ModuleGetFunction)(Handle* function, Handle module, const char* name) {
  return call_and_note(
      NAME(ModuleGetFunction), [&] { Functions::get().found(module, *function, name); }, function, module, name);
}
ERGOTUNE_EXPORT int OURS(ModuleUnload)(Handle module) { return unload(NAME(ModuleUnload), module); }
ERGOTUNE_EXPORT int OURS(CtxDestroy)(Handle context) { return end_context(NAME(CtxDestroy), context); }
ERGOTUNE_EXPORT int OURS(DevicePrimaryCtxReset)(int device) { return end_context(NAME(DevicePrimaryCtxReset), device); }
ERGOTUNE_EXPORT int OURS(DevicePrimaryCtxRelease)(int device) {
  return release_context(NAME(DevicePrimaryCtxRelease), device);
}
