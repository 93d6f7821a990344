// The functions of OpenCL that the library for its programs calls.
#pragma once

#include <cstddef>
#include <cstring>

#include "capture/inject/interpose.hpp"
#include "device/opencl/opencl_api.hpp"

namespace ergotune::inject {

using namespace ergotune::opencl;

inline constexpr cl_uint kMemType = 0x1100, kMemAssociated = 0x1107, kMemOffset = 0x1108, kMemObjectBuffer = 0x10F0;
inline constexpr cl_uint kQueueDevice = 0x1091, kKernelFunctionName = 0x1190, kKernelProgram = 0x1194;
inline constexpr cl_uint kCompileWorkGroupSize = 0x11B1;
inline constexpr cl_uint kArgAddress = 0x1196, kArgTypeName = 0x1198, kArgTypeQualifier = 0x1199, kArgName = 0x119A;
inline constexpr cl_uint kAddressGlobal = 0x119B, kAddressLocal = 0x119C, kAddressConstant = 0x119D;
inline constexpr cl_bitfield kTypeConst = 1;
inline constexpr cl_uint kEventCommandType = 0x11D2, kCommandUser = 0x1204;

using EnqueueKernel = cl_int(cl_command_queue, cl_kernel, cl_uint, const std::size_t*, const std::size_t*,
                             const std::size_t*, cl_uint, const cl_event*, cl_event*);
using Query = cl_int(void*, cl_uint, std::size_t, void*, std::size_t*);

/// Without "cl".
#define ERGOTUNE_OPENCL_FUNCTIONS(X)                                                                            \
  X(GetDeviceInfo), X(CreateCommandQueue), X(ReleaseCommandQueue), X(GetCommandQueueInfo), X(CreateBuffer),     \
      X(ReleaseMemObject), X(GetMemObjectInfo), X(CreateProgramWithSource), X(CreateProgramWithBinary),         \
      X(RetainProgram), X(ReleaseProgram), X(BuildProgram), X(CreateKernel), X(CreateKernelsInProgram),         \
      X(RetainKernel), X(ReleaseKernel), X(SetKernelArg), X(GetKernelInfo), X(GetKernelWorkGroupInfo),          \
      X(WaitForEvents), X(GetEventInfo), X(RetainEvent), X(ReleaseEvent), X(GetEventProfilingInfo), X(Finish),  \
      X(EnqueueReadBuffer), X(EnqueueCopyBuffer), X(EnqueueMapBuffer), X(EnqueueNDRangeKernel), X(EnqueueTask), \
      X(LinkProgram), X(GetKernelArgInfo), X(CreateCommandQueueWithProperties), X(SetKernelArgSVMPointer),      \
      X(SetKernelExecInfo), X(CloneKernel), X(CreateProgramWithIL)
enum class At : std::size_t {
#define ERGOTUNE_AT(name) name
  ERGOTUNE_OPENCL_FUNCTIONS(ERGOTUNE_AT)
#undef ERGOTUNE_AT
};

/// The functions of the program's loader.
struct Table {
  template <class F>
  F* get(At at) const {
    return find(at).get<F>();
  }
  static OwnFunction& find(At at);
};
inline constexpr Table next;

/// clGet...Info of any kind of object: the value, or zeros where the driver does not tell.
template <class T>
T info_of(At query, void* object, cl_uint name) {
  T value{};
  if (auto* function = next.get<Query>(query)) (void)function(object, name, sizeof value, &value, nullptr);
  return value;
}

}  // namespace ergotune::inject
