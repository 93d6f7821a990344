// What a launch costs a program: the same loop of launches of an empty kernel, with whatever layer OPENCL_LAYERS names.
// Prints nanoseconds per clEnqueueNDRangeKernel and per clSetKernelArg with it, the least of several blocks.
//
//   bench_capture [BLOCKS [LAUNCHES]]          bench/capture/compare runs it with and without the layer
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "device/opencl/opencl_api.hpp"

using namespace ergotune::opencl;

int main(int argc, char** argv) {
  const int blocks = argc > 1 ? std::atoi(argv[1]) : 40, launches = argc > 2 ? std::atoi(argv[2]) : 2000;
  const Api& cl = api();
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  if (!cl.usable() || cl.clGetPlatformIDs(1, &platform, nullptr) ||
      cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr))
    return 1;
  cl_int code = 0;
  const cl_context context = cl.clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
  const cl_command_queue queue = cl.clCreateCommandQueue(context, device, 0, &code);
  const char* source = "__kernel void nothing(int n, __global int* x) { if (n < 0) x[0] = n; }";
  const cl_program program = cl.clCreateProgramWithSource(context, 1, &source, nullptr, &code);
  if (cl.clBuildProgram(program, 1, &device, "", nullptr, nullptr)) return 1;
  const cl_kernel kernel = cl.clCreateKernel(program, "nothing", &code);
  const cl_mem memory = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, &code);
  cl.clSetKernelArg(kernel, 1, sizeof memory, &memory);
  const std::size_t one = 1;
  double launch = 1e9, argument = 1e9;
  for (int block = 0; block < blocks; ++block) {
    using Clock = std::chrono::steady_clock;
    const auto nanoseconds = [&](Clock::time_point from) {
      return std::chrono::duration<double, std::nano>(Clock::now() - from).count() / launches;
    };
    auto start = Clock::now();
    for (int i = 0; i < launches; ++i) cl.clSetKernelArg(kernel, 0, sizeof i, &i);
    argument = std::min(argument, nanoseconds(start));
    start = Clock::now();
    for (int i = 0; i < launches; ++i)
      cl.clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, &one, 0, nullptr, nullptr);
    launch = std::min(launch, nanoseconds(start));
    cl.clFinish(queue);
  }
  std::printf("{\"launch_ns\": %.1f, \"argument_ns\": %.1f}\n", launch, argument);
  return 0;
}
