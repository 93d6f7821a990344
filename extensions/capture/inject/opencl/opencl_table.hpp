// The driver's functions as an OpenCL layer is given them: a table of pointers whose order the ICD loader fixes (the
// dispatch table of the Khronos ICD loader, OpenCL 3.0). Only those that the layer uses are named.
#pragma once

#include <cstddef>
#include <cstring>

#include "device/opencl/opencl_api.hpp"

namespace ergotune::inject {

using namespace ergotune::opencl;

inline constexpr std::size_t kTableSize = 256;  // 149 in OpenCL 3.0; a later loader may have more

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

/// Functions without "cl", and their positions in the table.
#define ERGOTUNE_OPENCL_FUNCTIONS(X)                                                                              \
  X(GetDeviceInfo, 3), X(CreateCommandQueue, 9), X(ReleaseCommandQueue, 11), X(GetCommandQueueInfo, 12),          \
      X(CreateBuffer, 14), X(ReleaseMemObject, 18), X(GetMemObjectInfo, 20), X(CreateProgramWithSource, 26),      \
      X(CreateProgramWithBinary, 27), X(RetainProgram, 28), X(ReleaseProgram, 29), X(BuildProgram, 30),           \
      X(CreateKernel, 34), X(CreateKernelsInProgram, 35), X(RetainKernel, 36), X(ReleaseKernel, 37),              \
      X(SetKernelArg, 38), X(GetKernelInfo, 39), X(GetKernelWorkGroupInfo, 40), X(WaitForEvents, 41),             \
      X(GetEventInfo, 42), X(RetainEvent, 43), X(ReleaseEvent, 44), X(GetEventProfilingInfo, 45), X(Finish, 47),  \
      X(EnqueueReadBuffer, 48), X(EnqueueCopyBuffer, 50), X(EnqueueMapBuffer, 56), X(EnqueueNDRangeKernel, 59),   \
      X(EnqueueTask, 60), X(LinkProgram, 99), X(GetKernelArgInfo, 101), X(CreateCommandQueueWithProperties, 123), \
      X(SetKernelArgSVMPointer, 134), X(SetKernelExecInfo, 135), X(CloneKernel, 137), X(CreateProgramWithIL, 138)
enum class At : std::size_t {
#define ERGOTUNE_AT(name, position) name = position
  ERGOTUNE_OPENCL_FUNCTIONS(ERGOTUNE_AT)
#undef ERGOTUNE_AT
};

/// The functions of the next layer, or of the loader.
struct Table {
  void* entries[kTableSize] = {};
  template <class F>
  F* get(At at) const {
    return reinterpret_cast<F*>(entries[static_cast<std::size_t>(at)]);
  }
};

/// What this layer calls; filled by clInitLayer.
extern Table next;

/// clGet...Info of any kind of object: the value, or zeros where the driver does not tell.
template <class T>
T info_of(At query, void* object, cl_uint name) {
  T value{};
  if (auto* function = next.get<Query>(query)) (void)function(object, name, sizeof value, &value, nullptr);
  return value;
}

}  // namespace ergotune::inject
