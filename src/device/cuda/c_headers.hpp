// Headers of the C library for device code, which NVRTC does not have, so that sources written for nvcc compile.
#pragma once

#include <string>
#include <vector>

namespace ergotune::nvrtc {

struct Header {
  const char* name;  ///< as in #include <name>
  const char* text;
};

/// Returns the headers that none of the folders in the options (-I...) has: <math.h>, <cstdint>, <stdio.h> and others.
/// What NVRTC has built in (printf, assert, malloc, mathematical functions) they do not declare again; they add
/// integers of fixed width, limits, constants, and namespace std for the names with a "c" in front.
std::vector<Header> c_headers(const std::vector<std::string>& options);

}  // namespace ergotune::nvrtc
