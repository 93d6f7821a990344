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

/// Positions in the table, with the functions' types.
enum class At : std::size_t {
  GetDeviceInfo = 3,
  CreateCommandQueue = 9,
  ReleaseCommandQueue = 11,
  GetCommandQueueInfo = 12,
  CreateBuffer = 14,
  ReleaseMemObject = 18,
  GetMemObjectInfo = 20,
  CreateProgramWithSource = 26,
  CreateProgramWithBinary = 27,
  RetainProgram = 28,
  ReleaseProgram = 29,
  BuildProgram = 30,
  CreateKernel = 34,
  CreateKernelsInProgram = 35,
  RetainKernel = 36,
  ReleaseKernel = 37,
  SetKernelArg = 38,
  GetKernelInfo = 39,
  GetKernelWorkGroupInfo = 40,
  WaitForEvents = 41,
  GetEventInfo = 42,
  RetainEvent = 43,
  ReleaseEvent = 44,
  GetEventProfilingInfo = 45,
  Finish = 47,
  EnqueueReadBuffer = 48,
  EnqueueCopyBuffer = 50,
  EnqueueMapBuffer = 56,
  EnqueueNDRangeKernel = 59,
  EnqueueTask = 60,
  LinkProgram = 99,
  GetKernelArgInfo = 101,
  CreateCommandQueueWithProperties = 123,
  SetKernelArgSVMPointer = 134,
  SetKernelExecInfo = 135,
  CloneKernel = 137,
  CreateProgramWithIL = 138,
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
