// The functions of OpenCL that the library for its programs calls.
#pragma once

#include <cstddef>

#include "capture/inject/interpose.hpp"
#include "device/opencl/opencl_api.hpp"

namespace ergotune::inject {

using namespace ergotune::opencl;

inline constexpr cl_uint kMemType = 0x1100, kMemAssociated = 0x1107, kMemOffset = 0x1108, kMemObjectBuffer = 0x10F0;
inline constexpr cl_uint kQueueDevice = 0x1091, kKernelFunctionName = 0x1190;
inline constexpr cl_uint kCompileWorkGroupSize = 0x11B1;
inline constexpr cl_uint kArgAddress = 0x1196, kArgTypeName = 0x1198, kArgTypeQualifier = 0x1199, kArgName = 0x119A;
inline constexpr cl_uint kAddressGlobal = 0x119B, kAddressLocal = 0x119C, kAddressConstant = 0x119D;
inline constexpr cl_bitfield kTypeConst = 1;
inline constexpr cl_uint kEventCommandType = 0x11D2, kCommandUser = 0x1204;

using Query = cl_int(void*, cl_uint, std::size_t, void*, std::size_t*);

/// A function of the program's loader, called as the program would call it.
template <class F>
class Next;
template <class R, class... Arguments>
class Next<R(Arguments...)> {
 public:
  explicit Next(const char* name) : own_(own_function(name)) {}
  R operator()(Arguments... arguments) const { return own_.template get<R(Arguments...)>()(arguments...); }
  explicit operator bool() const { return own_.template get<R(Arguments...)>() != nullptr; }

 private:
  OwnFunction& own_;
};

struct NextFunctions {
  Next<Query> GetDeviceInfo{"clGetDeviceInfo"};
  Next<cl_command_queue(cl_context, cl_device_id, cl_bitfield, cl_int*)> CreateCommandQueue{"clCreateCommandQueue"};
  Next<cl_int(cl_command_queue)> ReleaseCommandQueue{"clReleaseCommandQueue"};
  Next<Query> GetCommandQueueInfo{"clGetCommandQueueInfo"};
  Next<cl_mem(cl_context, cl_bitfield, std::size_t, void*, cl_int*)> CreateBuffer{"clCreateBuffer"};
  Next<cl_int(cl_mem)> ReleaseMemObject{"clReleaseMemObject"};
  Next<Query> GetMemObjectInfo{"clGetMemObjectInfo"};
  Next<cl_program(cl_context, cl_uint, const char**, const std::size_t*, cl_int*)> CreateProgramWithSource{
      "clCreateProgramWithSource"};
  Next<cl_program(cl_context, cl_uint, const cl_device_id*, const std::size_t*, const unsigned char**, cl_int*,
                  cl_int*)>
      CreateProgramWithBinary{"clCreateProgramWithBinary"};
  Next<cl_int(cl_program)> RetainProgram{"clRetainProgram"};
  Next<cl_int(cl_program)> ReleaseProgram{"clReleaseProgram"};
  Next<cl_int(cl_program, cl_uint, const cl_device_id*, const char*, ProgramCallback*, void*)> BuildProgram{
      "clBuildProgram"};
  Next<cl_kernel(cl_program, const char*, cl_int*)> CreateKernel{"clCreateKernel"};
  Next<cl_int(cl_program, cl_uint, cl_kernel*, cl_uint*)> CreateKernelsInProgram{"clCreateKernelsInProgram"};
  Next<cl_int(cl_kernel)> RetainKernel{"clRetainKernel"};
  Next<cl_int(cl_kernel)> ReleaseKernel{"clReleaseKernel"};
  Next<cl_int(cl_kernel, cl_uint, std::size_t, const void*)> SetKernelArg{"clSetKernelArg"};
  Next<Query> GetKernelInfo{"clGetKernelInfo"};
  Next<cl_int(cl_kernel, cl_device_id, cl_uint, std::size_t, void*, std::size_t*)> GetKernelWorkGroupInfo{
      "clGetKernelWorkGroupInfo"};
  Next<cl_int(cl_uint, const cl_event*)> WaitForEvents{"clWaitForEvents"};
  Next<Query> GetEventInfo{"clGetEventInfo"};
  Next<cl_int(cl_event)> RetainEvent{"clRetainEvent"};
  Next<cl_int(cl_event)> ReleaseEvent{"clReleaseEvent"};
  Next<Query> GetEventProfilingInfo{"clGetEventProfilingInfo"};
  Next<cl_int(cl_command_queue)> Finish{"clFinish"};
  Next<cl_int(cl_command_queue, cl_mem, cl_bool, std::size_t, std::size_t, void*, cl_uint, const cl_event*, cl_event*)>
      EnqueueReadBuffer{"clEnqueueReadBuffer"};
  Next<cl_int(cl_command_queue, cl_mem, cl_mem, std::size_t, std::size_t, std::size_t, cl_uint, const cl_event*,
              cl_event*)>
      EnqueueCopyBuffer{"clEnqueueCopyBuffer"};
  Next<void*(cl_command_queue, cl_mem, cl_bool, cl_bitfield, std::size_t, std::size_t, cl_uint, const cl_event*,
             cl_event*, cl_int*)>
      EnqueueMapBuffer{"clEnqueueMapBuffer"};
  Next<cl_int(cl_command_queue, cl_kernel, cl_uint, const std::size_t*, const std::size_t*, const std::size_t*, cl_uint,
              const cl_event*, cl_event*)>
      EnqueueNDRangeKernel{"clEnqueueNDRangeKernel"};
  Next<cl_program(cl_context, cl_uint, const cl_device_id*, const char*, cl_uint, const cl_program*, ProgramCallback*,
                  void*, cl_int*)>
      LinkProgram{"clLinkProgram"};
  Next<cl_int(cl_kernel, cl_uint, cl_uint, std::size_t, void*, std::size_t*)> GetKernelArgInfo{"clGetKernelArgInfo"};
  Next<cl_command_queue(cl_context, cl_device_id, const cl_properties*, cl_int*)> CreateCommandQueueWithProperties{
      "clCreateCommandQueueWithProperties"};
  Next<cl_int(cl_kernel, cl_uint, const void*)> SetKernelArgSVMPointer{"clSetKernelArgSVMPointer"};
  Next<cl_int(cl_kernel, cl_uint, std::size_t, const void*)> SetKernelExecInfo{"clSetKernelExecInfo"};
  Next<cl_kernel(cl_kernel, cl_int*)> CloneKernel{"clCloneKernel"};
  Next<cl_program(cl_context, const void*, std::size_t, cl_int*)> CreateProgramWithIL{"clCreateProgramWithIL"};
};
inline const NextFunctions& next() {
  static const NextFunctions functions;
  return functions;
}

/// clGet...Info of any kind of object: the value, or zeros where the driver does not tell.
template <class T>
T info_of(const Next<Query>& query, void* object, cl_uint name) {
  T value{};
  if (query) (void)query(object, name, sizeof value, &value, nullptr);
  return value;
}

/// Empty where the driver does not report it.
inline std::string device_name(cl_device_id device) {
  char text[1024] = {};
  const auto& query = next().GetDeviceInfo;
  return query && query(device, CL_DEVICE_NAME, sizeof text - 1, text, nullptr) == CL_SUCCESS ? text : "";
}

}  // namespace ergotune::inject
