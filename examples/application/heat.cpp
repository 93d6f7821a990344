// Heat conduction with OpenCL as it is usually written: the shape of a block is a guess.
//   heat WIDTH HEIGHT STEPS
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "opencl.hpp"

int main(int argc, char** argv) {
  Grids grids(argc > 1 ? std::atoi(argv[1]) : 1024, argc > 2 ? std::atoi(argv[2]) : 1024);
  const int steps = argc > 3 ? std::atoi(argv[3]) : 100;

  std::ostringstream text;
  text << std::ifstream(HEAT_FOLDER "/heat.cl").rdbuf();
  const std::string source = text.str();
  const char* pointer = source.c_str();
  cl_program program = clCreateProgramWithSource(grids.context, 1, &pointer, nullptr, nullptr);
  if (clBuildProgram(program, 1, &grids.device, "-DROWS=1", nullptr, nullptr) != 0) return 1;
  cl_kernel heat = clCreateKernel(program, "heat", nullptr);

  const float rate = 0.2f;
  const double start = seconds();
  for (int step = 0; step < steps; ++step) {
    clSetKernelArg(heat, 0, sizeof(int), &grids.width);
    clSetKernelArg(heat, 1, sizeof(int), &grids.height);
    clSetKernelArg(heat, 2, sizeof(float), &rate);
    clSetKernelArg(heat, 3, sizeof(cl_mem), &grids.now);
    clSetKernelArg(heat, 4, sizeof(cl_mem), &grids.next);
    const std::size_t block[] = {16, 16};
    const std::size_t global[] = {(grids.width + 15u) / 16 * 16, (grids.height + 15u) / 16 * 16};
    clEnqueueNDRangeKernel(grids.queue, heat, 2, nullptr, global, block, 0, nullptr, nullptr);
    std::swap(grids.now, grids.next);
  }
  clFinish(grids.queue);
  std::printf("%.3f ms a step\n", (seconds() - start) * 1e3 / steps);
  std::printf("sum %.6f\n", grids.sum());
}
