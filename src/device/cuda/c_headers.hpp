// Headers of the C library for device code, which NVRTC does not have, so that sources written for nvcc compile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ergotune::nvrtc {

struct Header {
  std::string name;  ///< as in #include <name>
  std::string text;
};

/// Returns headers that none of the folders in the options (-I...) has. Of the C library: <math.h>, <cstdint>,
/// <stdio.h> and others. Of the C++ library those of which CUDA has its own for device code, <type_traits>, <limits>
/// and others, if its folder is among the options. What NVRTC has built in (printf, assert, malloc, mathematical
/// functions) they do not declare again; they add integers of fixed width, limits, constants, and namespace std for the
/// names with a "c" in front.
std::vector<Header> headers_for(const std::vector<std::string>& options);

/// Declarations of the types that nvcc knows without a header and NVRTC does not: int32_t, uint and others.
std::string types_of_nvcc();

/// True for a header that only host code needs: of the C and C++ libraries, such as <vector>, of POSIX, OpenMP and MPI,
/// and of the run-time libraries of CUDA and HIP, whose device parts are built in.
bool is_for_host(std::string_view header);

}  // namespace ergotune::nvrtc
