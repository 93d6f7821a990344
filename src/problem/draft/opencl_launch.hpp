// How a host program in C, C++ or Python (pyopencl) enqueues an OpenCL kernel.
#pragma once

#include <string>

#include "problem/draft/source_launch.hpp"

namespace ergotune::draft {

/// Returns the first enqueueing of a kernel: clEnqueueNDRangeKernel with the clSetKernelArg before it,
/// cl::CommandQueue::enqueueNDRangeKernel, pyopencl's `program.kernel(queue, global, local, ...)` or
/// enqueue_nd_range_kernel. Its grid is the number of work-groups, "(n) / 64" for n work items in groups of 64;
/// where the implementation chooses the size of a group, the block is empty and the grid is that of groups of one.
SourceLaunch opencl_launch(const std::string& source, const std::string& kernel);

/// Returns a Python program as opencl_launch and source_value read it: statements end with ';', `//` is `/`, and
/// numbers of NumPy are their values.
std::string python_as_c(const std::string& source);

}  // namespace ergotune::draft
