// What both programs share: OpenCL, and a grid to begin with.
#pragma once

#if __has_include(<CL/cl.h>)
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#else  // the few declarations that are used here, where no headers are installed
#include <cstddef>
#include <cstdint>
using cl_int = std::int32_t;
using cl_uint = std::uint32_t;
using cl_ulong = std::uint64_t;
using cl_platform_id = struct platform_*;
using cl_device_id = struct device_*;
using cl_context = struct context_*;
using cl_command_queue = struct queue_*;
using cl_mem = struct memory_*;
using cl_program = struct program_*;
using cl_kernel = struct kernel_*;
using cl_event = struct event_*;
extern "C" {
cl_int clGetPlatformIDs(cl_uint, cl_platform_id*, cl_uint*);
cl_int clGetDeviceIDs(cl_platform_id, cl_ulong, cl_uint, cl_device_id*, cl_uint*);
cl_context clCreateContext(const std::intptr_t*, cl_uint, const cl_device_id*, void (*)(const char*, const void*, std::size_t, void*), void*, cl_int*);
cl_command_queue clCreateCommandQueue(cl_context, cl_device_id, cl_ulong, cl_int*);
cl_mem clCreateBuffer(cl_context, cl_ulong, std::size_t, void*, cl_int*);
cl_program clCreateProgramWithSource(cl_context, cl_uint, const char**, const std::size_t*, cl_int*);
cl_int clBuildProgram(cl_program, cl_uint, const cl_device_id*, const char*, void (*)(cl_program, void*), void*);
cl_kernel clCreateKernel(cl_program, const char*, cl_int*);
cl_int clSetKernelArg(cl_kernel, cl_uint, std::size_t, const void*);
cl_int clEnqueueNDRangeKernel(cl_command_queue, cl_kernel, cl_uint, const std::size_t*, const std::size_t*, const std::size_t*, cl_uint, const cl_event*, cl_event*);
cl_int clEnqueueReadBuffer(cl_command_queue, cl_mem, cl_uint, std::size_t, std::size_t, void*, cl_uint, const cl_event*, cl_event*);
cl_int clFinish(cl_command_queue);
}
inline constexpr cl_ulong CL_DEVICE_TYPE_ALL = 0xFFFFFFFF, CL_MEM_READ_WRITE = 1, CL_MEM_COPY_HOST_PTR = 32;
inline constexpr cl_uint CL_TRUE = 1;
#endif

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

/// The first device of the first platform, a queue on it, and two grids that are hot at one edge.
struct Grids {
  int width, height;
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_mem now = nullptr, next = nullptr;

  Grids(int w, int h) : width(w), height(h) {
    cl_platform_id platform = nullptr;
    if (clGetPlatformIDs(1, &platform, nullptr) != 0 || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != 0) {
      std::fprintf(stderr, "there is no OpenCL device\n");
      std::exit(77);
    }
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
    queue = clCreateCommandQueue(context, device, 0, nullptr);
    std::vector<float> cells(static_cast<std::size_t>(width) * height, 0.0f);
    for (int y = 0; y < height; ++y) cells[static_cast<std::size_t>(y) * width] = 1.0f + 0.001f * static_cast<float>(y);
    const std::size_t bytes = cells.size() * sizeof(float);
    now = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, cells.data(), nullptr);
    next = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, cells.data(), nullptr);
  }
  double sum() {
    std::vector<float> cells(static_cast<std::size_t>(width) * height);
    clEnqueueReadBuffer(queue, now, CL_TRUE, 0, cells.size() * sizeof(float), cells.data(), 0, nullptr, nullptr);
    double sum = 0;
    for (const float cell : cells) sum += cell;
    return sum;
  }
};

inline double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
