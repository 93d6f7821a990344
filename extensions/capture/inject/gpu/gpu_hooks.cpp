// The functions that CUDA's driver and HIP's have in common.
#include "capture/inject/gpu/gpu_hooks.hpp"

#include "capture/inject/gpu/gpu_watch.hpp"

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
  return call_and_note<int(int)>(name, note, device);
}

Hook* hook_named(std::string_view name) {
  for (Hook& one : hooks())
    if (name == one.name) return &one;
  return nullptr;
}

int unload(const char* name, Handle code) {
  quietly([&] {
    for (const Handle function : Functions::get().unloaded(code)) forget_tuned(function);
  });
  return call_and_note<int(Handle)>(
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

void put_in_front(const std::string& name, void** function) { *function = function_in_front(name, *function); }

}  // namespace gpu

bool is_hooked(std::string_view name) noexcept { return gpu::hook_named(name) != nullptr; }

void* function_in_front(std::string_view name, void* own) noexcept {
  try {
    gpu::Hook* const hook = gpu::hook_named(name);
    if (!hook || own == hook->ours) return own;
    const CaptureRequest::Mode mode = Session::get().wishes().mode;
    if (mode == CaptureRequest::Mode::nothing || (hook->in_run_only && mode != CaptureRequest::Mode::run)) return own;
    // of the first driver that is looked into; another's is left alone
    void* none = nullptr;
    if (!hook->own.compare_exchange_strong(none, own) && none != own) return own;
    return hook->ours;
  } catch (...) {
  }
  return own;
}

}  // namespace ergotune::inject

using namespace ergotune::inject::gpu;

ERGOTUNE_EXPORT int OURS(ModuleLoad)(Handle* module, const char* file) {
  return call_and_note<int(Handle*, const char*)>(
      NAME(ModuleLoad), [&] { Functions::get().loaded_file(*module, file); }, module, file);
}
ERGOTUNE_EXPORT int OURS(ModuleLoadData)(Handle* module, const void* image) {
  return call_and_note<int(Handle*, const void*)>(
      NAME(ModuleLoadData), [&] { Functions::get().loaded(*module, image); }, module, image);
}
ERGOTUNE_EXPORT int OURS(ModuleLoadDataEx)(Handle* module, const void* image, unsigned count, int* options,
                                           void** values) {
  return call_and_note<int(Handle*, const void*, unsigned, int*, void**)>(
      NAME(ModuleLoadDataEx), [&] { Functions::get().loaded(*module, image); }, module, image, count, options, values);
}
ERGOTUNE_EXPORT int OURS(ModuleGetFunction)(Handle* function, Handle module, const char* name) {
  return call_and_note<int(Handle*, Handle, const char*)>(
      NAME(ModuleGetFunction), [&] { Functions::get().found(module, *function, name); }, function, module, name);
}
ERGOTUNE_EXPORT int OURS(ModuleUnload)(Handle module) { return unload(NAME(ModuleUnload), module); }
ERGOTUNE_EXPORT int OURS(CtxDestroy)(Handle context) { return end_context<int(Handle)>(NAME(CtxDestroy), context); }
ERGOTUNE_EXPORT int OURS(DevicePrimaryCtxReset)(int device) {
  return end_context<int(int)>(NAME(DevicePrimaryCtxReset), device);
}
ERGOTUNE_EXPORT int OURS(DevicePrimaryCtxRelease)(int device) {
  return release_context(NAME(DevicePrimaryCtxRelease), device);
}

std::deque<Hook>& ergotune::inject::gpu::hooks() {
  static std::deque<Hook>* const all = [] {
    auto* made = new std::deque<Hook>;
#define ADD(name) add_hook(*made, NAME(name), OURS(name))
    ADD(ModuleLoad);
    ADD(ModuleLoadData);
    ADD(ModuleLoadDataEx);
    ADD(ModuleGetFunction);
    ADD(ModuleUnload);
    ADD(CtxDestroy);
    ADD(DevicePrimaryCtxReset);
    ADD(DevicePrimaryCtxRelease);
#undef ADD
    add_own_hooks(*made);
    add_compiler_hooks(*made);
    return made;
  }();
  return *all;
}
