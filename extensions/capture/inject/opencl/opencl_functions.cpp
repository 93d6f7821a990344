#include "capture/inject/opencl/opencl_table.hpp"
#include "capture/inject/session.hpp"

namespace ergotune::inject {

OwnFunction& Table::find(At at) {
#define ERGOTUNE_FIND(name) &own_function("cl" #name)
  static OwnFunction* const all[] = {ERGOTUNE_OPENCL_FUNCTIONS(ERGOTUNE_FIND)};
#undef ERGOTUNE_FIND
  return *all[static_cast<std::size_t>(at)];
}

void* find_function(const char* name) {
  if (void* next = own_dlsym(RTLD_NEXT, name)) return next;
  void* const library = loaded_library("libOpenCL");
  return library ? own_dlsym(library, name) : nullptr;
}

bool stands_in_front(std::string_view) { return !Session::get().wants(CaptureRequest::Mode::nothing); }

}  // namespace ergotune::inject
