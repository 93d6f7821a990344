// OpenCL: the declarations that ergotune uses, written from the specification (OpenCL 1.2 and the listed extensions),
// and the entry points of libOpenCL as one table. Building needs no SDK headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/driver_table.hpp"

namespace ergotune::opencl {

using cl_int = std::int32_t;
using cl_uint = std::uint32_t;
using cl_ulong = std::uint64_t;
using cl_bool = cl_uint;
using cl_bitfield = cl_ulong;
using cl_properties = std::intptr_t;
using cl_platform_id = struct PlatformHandle*;
using cl_device_id = struct DeviceHandle*;
using cl_context = struct ContextHandle*;
using cl_command_queue = struct QueueHandle*;
using cl_mem = struct MemoryHandle*;
using cl_program = struct ProgramHandle*;
using cl_kernel = struct KernelHandle*;
using cl_event = struct EventHandle*;

enum Error : cl_int {
  CL_SUCCESS = 0,
  CL_DEVICE_NOT_FOUND = -1,
  CL_DEVICE_NOT_AVAILABLE = -2,
  CL_COMPILER_NOT_AVAILABLE = -3,
  CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
  CL_OUT_OF_RESOURCES = -5,
  CL_OUT_OF_HOST_MEMORY = -6,
  CL_PROFILING_INFO_NOT_AVAILABLE = -7,
  CL_BUILD_PROGRAM_FAILURE = -11,
  CL_MISALIGNED_SUB_BUFFER_OFFSET = -13,
  CL_COMPILE_PROGRAM_FAILURE = -15,
  CL_LINK_PROGRAM_FAILURE = -17,
  CL_INVALID_VALUE = -30,
  CL_INVALID_BINARY = -42,
  CL_INVALID_BUILD_OPTIONS = -43,
  CL_INVALID_KERNEL_NAME = -46,
  CL_INVALID_ARG_INDEX = -49,
  CL_INVALID_ARG_VALUE = -50,
  CL_INVALID_ARG_SIZE = -51,
  CL_INVALID_KERNEL_ARGS = -52,
  CL_INVALID_WORK_DIMENSION = -53,
  CL_INVALID_WORK_GROUP_SIZE = -54,
  CL_INVALID_WORK_ITEM_SIZE = -55,
  CL_INVALID_GLOBAL_WORK_SIZE = -63,
  CL_INVALID_BUFFER_SIZE = -61,
  CL_PLATFORM_NOT_FOUND_KHR = -1001,
};

enum Name : cl_uint {
  CL_PLATFORM_VERSION = 0x0901,
  CL_PLATFORM_NAME = 0x0902,
  CL_DEVICE_TYPE = 0x1000,
  CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
  CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
  CL_DEVICE_GLOBAL_MEM_CACHE_SIZE = 0x101E,
  CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
  CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
  CL_DEVICE_NAME = 0x102B,
  CL_DRIVER_VERSION = 0x102D,
  CL_DEVICE_VERSION = 0x102F,
  CL_DEVICE_EXTENSIONS = 0x1030,
  CL_DEVICE_PARTITION_PROPERTIES = 0x1044,
  CL_DEVICE_PARTITION_BY_COUNTS = 0x1087,
  CL_DEVICE_UUID_KHR = 0x106A,                     // cl_khr_device_uuid
  CL_DEVICE_PCI_BUS_INFO_KHR = 0x410F,             // cl_khr_pci_bus_info
  CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV = 0x4000,  // cl_nv_device_attribute_query
  CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV = 0x4001,
  CL_DEVICE_REGISTERS_PER_BLOCK_NV = 0x4002,
  CL_DEVICE_WARP_SIZE_NV = 0x4003,
  CL_DEVICE_PCI_BUS_ID_NV = 0x4008,
  CL_DEVICE_PCI_SLOT_ID_NV = 0x4009,
  CL_DEVICE_PCI_DOMAIN_ID_NV = 0x400A,
  CL_DEVICE_TOPOLOGY_AMD = 0x4037,  // cl_amd_device_attribute_query
  CL_DEVICE_BOARD_NAME_AMD = 0x4038,
  CL_DEVICE_WAVEFRONT_WIDTH_AMD = 0x4043,
  CL_CONTEXT_PLATFORM = 0x1084,
  CL_QUEUE_CONTEXT = 0x1090,
  CL_QUEUE_PROPERTIES = 0x1093,
  CL_QUEUE_PRIORITY_KHR = 0x1096,  // cl_khr_priority_hints
  CL_MEM_SIZE = 0x1102,
  CL_MEM_CONTEXT = 0x1106,
  CL_PROGRAM_BINARY_SIZES = 0x1165,
  CL_PROGRAM_BINARIES = 0x1166,
  CL_PROGRAM_BUILD_LOG = 0x1183,
  CL_KERNEL_WORK_GROUP_SIZE = 0x11B0,
  CL_KERNEL_LOCAL_MEM_SIZE = 0x11B2,
  CL_KERNEL_PRIVATE_MEM_SIZE = 0x11B4,
  CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
  CL_PROFILING_COMMAND_START = 0x1282,
  CL_PROFILING_COMMAND_END = 0x1283,
};

inline constexpr cl_bitfield CL_DEVICE_TYPE_CPU = 1u << 1, CL_DEVICE_TYPE_GPU = 1u << 2;
inline constexpr cl_bitfield CL_DEVICE_TYPE_ALL = 0xFFFFFFFF;
inline constexpr cl_bitfield CL_MEM_READ_WRITE = 1u << 0;
inline constexpr cl_bitfield CL_QUEUE_PROFILING_ENABLE = 1u << 1;
inline constexpr cl_properties CL_QUEUE_PRIORITY_HIGH_KHR = 1, CL_QUEUE_PRIORITY_LOW_KHR = 4;
inline constexpr cl_uint CL_BUFFER_CREATE_TYPE_REGION = 0x1220;
inline constexpr cl_uint CL_KERNEL_NUM_ARGS = 0x1191, CL_KERNEL_ARG_TYPE_NAME = 0x1198,
                         CL_KERNEL_ARG_TYPE_QUALIFIER = 0x1199;
inline constexpr cl_ulong CL_KERNEL_ARG_TYPE_CONST = 1;
inline constexpr cl_int CL_COMPLETE = 0;

struct cl_buffer_region {
  std::size_t origin, size;
};

using ContextCallback = void(const char*, const void*, std::size_t, void*);
using ProgramCallback = void(cl_program, void*);
using EventCallback = void(cl_event, cl_int, void*);

struct Api : DriverTable {
  Api();

  EntryPoint<cl_int(cl_uint, cl_platform_id*, cl_uint*)> clGetPlatformIDs{this, "clGetPlatformIDs"};
  EntryPoint<cl_int(cl_platform_id, cl_uint, std::size_t, void*, std::size_t*)> clGetPlatformInfo{this,
                                                                                                  "clGetPlatformInfo"};
  EntryPoint<cl_int(cl_platform_id, cl_bitfield, cl_uint, cl_device_id*, cl_uint*)> clGetDeviceIDs{this,
                                                                                                   "clGetDeviceIDs"};
  EntryPoint<cl_int(cl_device_id, cl_uint, std::size_t, void*, std::size_t*)> clGetDeviceInfo{this, "clGetDeviceInfo"};
  EntryPoint<cl_int(cl_device_id, const cl_properties*, cl_uint, cl_device_id*, cl_uint*)> clCreateSubDevices{
      this, "clCreateSubDevices", Need::optional};
  EntryPoint<cl_int(cl_device_id)> clReleaseDevice{this, "clReleaseDevice", Need::optional};
  EntryPoint<cl_context(const cl_properties*, cl_uint, const cl_device_id*, ContextCallback*, void*, cl_int*)>
      clCreateContext{this, "clCreateContext"};
  EntryPoint<cl_int(cl_context)> clReleaseContext{this, "clReleaseContext"};
  EntryPoint<cl_command_queue(cl_context, cl_device_id, cl_bitfield, cl_int*)> clCreateCommandQueue{
      this, "clCreateCommandQueue"};
  EntryPoint<cl_command_queue(cl_context, cl_device_id, const cl_properties*, cl_int*)>
      clCreateCommandQueueWithProperties{this, "clCreateCommandQueueWithProperties", Need::optional};
  EntryPoint<cl_int(cl_command_queue, cl_uint, std::size_t, void*, std::size_t*)> clGetCommandQueueInfo{
      this, "clGetCommandQueueInfo"};
  EntryPoint<cl_int(cl_command_queue)> clReleaseCommandQueue{this, "clReleaseCommandQueue"};
  EntryPoint<cl_mem(cl_context, cl_bitfield, std::size_t, void*, cl_int*)> clCreateBuffer{this, "clCreateBuffer"};
  EntryPoint<cl_mem(cl_mem, cl_bitfield, cl_uint, const void*, cl_int*)> clCreateSubBuffer{this, "clCreateSubBuffer"};
  EntryPoint<cl_int(cl_mem, cl_uint, std::size_t, void*, std::size_t*)> clGetMemObjectInfo{this, "clGetMemObjectInfo"};
  EntryPoint<cl_int(cl_mem)> clReleaseMemObject{this, "clReleaseMemObject"};
  EntryPoint<cl_program(cl_context, cl_uint, const char**, const std::size_t*, cl_int*)> clCreateProgramWithSource{
      this, "clCreateProgramWithSource"};
  EntryPoint<cl_program(cl_context, cl_uint, const cl_device_id*, const std::size_t*, const unsigned char**, cl_int*,
                        cl_int*)>
      clCreateProgramWithBinary{this, "clCreateProgramWithBinary"};
  EntryPoint<cl_int(cl_program, cl_uint, const cl_device_id*, const char*, ProgramCallback*, void*)> clBuildProgram{
      this, "clBuildProgram"};
  EntryPoint<cl_int(cl_program, cl_device_id, cl_uint, std::size_t, void*, std::size_t*)> clGetProgramBuildInfo{
      this, "clGetProgramBuildInfo"};
  EntryPoint<cl_int(cl_program, cl_uint, std::size_t, void*, std::size_t*)> clGetProgramInfo{this, "clGetProgramInfo"};
  EntryPoint<cl_int(cl_program)> clReleaseProgram{this, "clReleaseProgram"};
  EntryPoint<cl_kernel(cl_program, const char*, cl_int*)> clCreateKernel{this, "clCreateKernel"};
  EntryPoint<cl_int(cl_kernel, cl_uint, std::size_t, const void*)> clSetKernelArg{this, "clSetKernelArg"};
  EntryPoint<cl_int(cl_kernel, cl_device_id, cl_uint, std::size_t, void*, std::size_t*)> clGetKernelWorkGroupInfo{
      this, "clGetKernelWorkGroupInfo"};
  EntryPoint<cl_int(cl_kernel, cl_uint, std::size_t, void*, std::size_t*)> clGetKernelInfo{this, "clGetKernelInfo"};
  EntryPoint<cl_int(cl_kernel, cl_uint, cl_uint, std::size_t, void*, std::size_t*)> clGetKernelArgInfo{
      this, "clGetKernelArgInfo", Need::optional};
  EntryPoint<cl_int(cl_kernel)> clReleaseKernel{this, "clReleaseKernel"};
  EntryPoint<cl_int(cl_command_queue, cl_kernel, cl_uint, const std::size_t*, const std::size_t*, const std::size_t*,
                    cl_uint, const cl_event*, cl_event*)>
      clEnqueueNDRangeKernel{this, "clEnqueueNDRangeKernel"};
  EntryPoint<cl_int(cl_command_queue, cl_mem, cl_bool, std::size_t, std::size_t, const void*, cl_uint, const cl_event*,
                    cl_event*)>
      clEnqueueWriteBuffer{this, "clEnqueueWriteBuffer"};
  EntryPoint<cl_int(cl_command_queue, cl_mem, cl_bool, std::size_t, std::size_t, void*, cl_uint, const cl_event*,
                    cl_event*)>
      clEnqueueReadBuffer{this, "clEnqueueReadBuffer"};
  EntryPoint<cl_int(cl_command_queue, cl_mem, cl_mem, std::size_t, std::size_t, std::size_t, cl_uint, const cl_event*,
                    cl_event*)>
      clEnqueueCopyBuffer{this, "clEnqueueCopyBuffer"};
  EntryPoint<cl_int(cl_command_queue, cl_mem, const void*, std::size_t, std::size_t, std::size_t, cl_uint,
                    const cl_event*, cl_event*)>
      clEnqueueFillBuffer{this, "clEnqueueFillBuffer"};
  EntryPoint<cl_int(cl_command_queue, cl_uint, const cl_event*, cl_event*)> clEnqueueBarrierWithWaitList{
      this, "clEnqueueBarrierWithWaitList"};
  EntryPoint<cl_int(cl_command_queue, cl_uint, const cl_event*, cl_event*)> clEnqueueMarkerWithWaitList{
      this, "clEnqueueMarkerWithWaitList", Need::optional};
  EntryPoint<cl_int(cl_event, cl_int, EventCallback*, void*)> clSetEventCallback{this, "clSetEventCallback",
                                                                                 Need::optional};
  EntryPoint<cl_int(cl_command_queue)> clFlush{this, "clFlush"};
  EntryPoint<cl_int(cl_command_queue)> clFinish{this, "clFinish"};
  EntryPoint<cl_int(cl_event, cl_uint, std::size_t, void*, std::size_t*)> clGetEventInfo{this, "clGetEventInfo"};
  EntryPoint<cl_int(cl_event, cl_uint, std::size_t, void*, std::size_t*)> clGetEventProfilingInfo{
      this, "clGetEventProfilingInfo"};
  EntryPoint<cl_event(cl_context, cl_int*)> clCreateUserEvent{this, "clCreateUserEvent"};
  EntryPoint<cl_int(cl_event, cl_int)> clSetUserEventStatus{this, "clSetUserEventStatus"};
  EntryPoint<cl_int(cl_event)> clRetainEvent{this, "clRetainEvent"};
  EntryPoint<cl_int(cl_event)> clReleaseEvent{this, "clReleaseEvent"};
};

/// Returns the table, which is loaded at first use. Callers must check usable() first.
const Api& api();

/// Returns "CL_OUT_OF_RESOURCES (-5)".
std::string error_name(cl_int code);

}  // namespace ergotune::opencl
