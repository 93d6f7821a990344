// NVRTC's functions in front of NVRTC's own (LD_PRELOAD): what a program compiles at run time is noted on its way.
// Programs that look them up in its library find these as well.
#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "capture/inject/cuda/cuda_code.hpp"
#include "capture/inject/interpose.hpp"
#include "capture/inject/session.hpp"

#define ERGOTUNE_EXPORT extern "C" __attribute__((visibility("default")))

namespace ergotune::inject::cuda {
namespace {

using Program = void*;

struct Programs {
  std::mutex mutex;
  std::map<Program, std::shared_ptr<RuntimeSource>> made;
};
Programs& programs() {
  static Programs* const all = new Programs;
  return *all;
}

int find_nvrtc(dl_phdr_info* info, std::size_t, void* found) {
  const char* name = std::strrchr(info->dlpi_name, '/');
  if (!name || std::strncmp(name, "/libnvrtc.so", 12) != 0) return 0;
  *static_cast<std::string*>(found) = info->dlpi_name;
  return 1;
}

/// NVRTC's own function: the next of that name, or in the library that a plugin of the program has loaded for itself.
void* own(const char* name) {
  if (void* next = own_dlsym(RTLD_NEXT, name)) return next;
  std::string file;
  dl_iterate_phdr(find_nvrtc, &file);
  void* library = file.empty() ? nullptr : dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
  return library ? own_dlsym(library, name) : nullptr;
}
template <class F>
F* own_as(const char* name) {
  return reinterpret_cast<F*>(own(name));
}

constexpr int kInternalError = 11;

bool watched() { return Session::get().wants(CaptureRequest::Mode::capture); }

template <class F>
void quietly(F&& f) noexcept {
  try {
    f();
  } catch (...) {
  }
}

}  // namespace
}  // namespace ergotune::inject::cuda

using namespace ergotune::inject::cuda;

ERGOTUNE_EXPORT int nvrtcCreateProgram(Program* program, const char* source, const char* name, int count,
                                       const char* const* headers, const char* const* include_names) {
  static auto* const next =
      own_as<int(Program*, const char*, const char*, int, const char* const*, const char* const*)>(
          "nvrtcCreateProgram");
  if (!next) return kInternalError;
  const int code = next(program, source, name, count, headers, include_names);
  if (code == 0 && source && watched())
    quietly([&] {
      auto made = std::make_shared<RuntimeSource>();
      made->text = source;
      for (int i = 0; i < count && headers && include_names; ++i)
        made->headers.emplace_back(include_names[i], headers[i]);
      const std::lock_guard lock(programs().mutex);
      programs().made[*program] = std::move(made);
    });
  return code;
}

ERGOTUNE_EXPORT int nvrtcAddNameExpression(Program program, const char* expression) {
  static auto* const next = own_as<int(Program, const char*)>("nvrtcAddNameExpression");
  if (!next) return kInternalError;
  const int code = next(program, expression);
  if (code == 0 && watched())
    quietly([&] {
      const std::lock_guard lock(programs().mutex);
      const auto found = programs().made.find(program);
      if (found != programs().made.end()) found->second->names.emplace_back("", expression);
    });
  return code;
}

ERGOTUNE_EXPORT int nvrtcCompileProgram(Program program, int count, const char* const* options) {
  static auto* const next = own_as<int(Program, int, const char* const*)>("nvrtcCompileProgram");
  if (!next) return kInternalError;
  const int code = next(program, count, options);
  if (code == 0 && watched())
    quietly([&] {
      static auto* const lower = own_as<int(Program, const char*, const char**)>("nvrtcGetLoweredName");
      const std::lock_guard lock(programs().mutex);
      const auto found = programs().made.find(program);
      if (found == programs().made.end()) return;
      auto compiled = std::make_shared<RuntimeSource>(*found->second);
      for (int i = 0; i < count && options; ++i) compiled->options.emplace_back(options[i]);
      for (auto& [lowered, expression] : compiled->names) {
        const char* text = nullptr;
        if (lower && lower(program, expression.c_str(), &text) == 0 && text) lowered = text;
      }
      Code::get().add_source(std::move(compiled));
    });
  return code;
}

ERGOTUNE_EXPORT int nvrtcDestroyProgram(Program* program) {
  static auto* const next = own_as<int(Program*)>("nvrtcDestroyProgram");
  if (!next) return kInternalError;
  if (program && watched())
    quietly([&] {
      const std::lock_guard lock(programs().mutex);
      programs().made.erase(*program);
    });
  return next(program);
}

void* ergotune::inject::cuda::nvrtc_in_front(std::string_view name) {
  const std::pair<std::string_view, void*> functions[] = {
      {"nvrtcCreateProgram", reinterpret_cast<void*>(nvrtcCreateProgram)},
      {"nvrtcAddNameExpression", reinterpret_cast<void*>(nvrtcAddNameExpression)},
      {"nvrtcCompileProgram", reinterpret_cast<void*>(nvrtcCompileProgram)},
      {"nvrtcDestroyProgram", reinterpret_cast<void*>(nvrtcDestroyProgram)}};
  for (const auto& [known, ours] : functions)
    if (name == known && watched()) return ours;
  return nullptr;
}
