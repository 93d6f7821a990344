#include "device/cuda/c_headers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

namespace ergotune::nvrtc {
namespace {

constexpr const char* kBuiltIn = "";

constexpr const char* kLibrary = R"(#pragma once
namespace std {
using ::size_t; using ::printf; using ::malloc; using ::free; using ::memcpy; using ::memset;
}
)";

constexpr const char* kIntegers = R"(#pragma once
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long uint64_t; typedef long intptr_t; typedef unsigned long uintptr_t;
typedef long intmax_t; typedef unsigned long uintmax_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295U
#define INT64_MIN (-9223372036854775807L - 1)
#define INT64_MAX 9223372036854775807L
#define UINT64_MAX 18446744073709551615UL
#define SIZE_MAX UINT64_MAX
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::uint8_t; using ::uint16_t; using ::uint32_t;
using ::uint64_t; using ::intptr_t; using ::uintptr_t; using ::intmax_t; using ::uintmax_t;
}
)";

constexpr const char* kLimits = R"(#pragma once
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LONG_MIN (-9223372036854775807L - 1)
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MIN (-9223372036854775807LL - 1)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL
)";

constexpr const char* kFloats = R"(#pragma once
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define FLT_MIN 1.17549435e-38F
#define FLT_MAX 3.40282347e+38F
#define FLT_EPSILON 1.19209290e-07F
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
#define DBL_MIN 2.2250738585072014e-308
#define DBL_MAX 1.7976931348623157e+308
#define DBL_EPSILON 2.2204460492503131e-16
)";

constexpr const char* kMathematics = R"(#pragma once
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define HUGE_VALF INFINITY
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000LL)
namespace std {
using ::abs; using ::acos; using ::acosh; using ::asin; using ::asinh; using ::atan; using ::atan2; using ::atanh;
using ::cbrt; using ::ceil; using ::copysign; using ::cos; using ::cosh; using ::erf; using ::erfc; using ::exp;
using ::exp2; using ::expm1; using ::fabs; using ::fdim; using ::floor; using ::fma; using ::fmax; using ::fmin;
using ::fmod; using ::frexp; using ::hypot; using ::ilogb; using ::isfinite; using ::isinf; using ::isnan;
using ::ldexp; using ::lgamma; using ::log; using ::log10; using ::log1p; using ::log2; using ::lrint; using ::lround;
using ::modf; using ::nearbyint; using ::pow; using ::remainder; using ::rint; using ::round; using ::signbit;
using ::sin; using ::sinh; using ::sqrt; using ::tan; using ::tanh; using ::tgamma; using ::trunc;
}
)";

constexpr const char* kDefinitions = R"(#pragma once
#define offsetof(type, member) __builtin_offsetof(type, member)
namespace std {
using ::size_t; using ::ptrdiff_t;
}
)";

const Header kHeaders[] = {
    {"assert.h", kBuiltIn},  {"cassert", kBuiltIn},     {"cfloat", kFloats},     {"climits", kLimits},
    {"cmath", kMathematics}, {"cstddef", kDefinitions}, {"cstdint", kIntegers},  {"cstdio", kLibrary},
    {"cstdlib", kLibrary},   {"cstring", kLibrary},     {"float.h", kFloats},    {"inttypes.h", kIntegers},
    {"limits.h", kLimits},   {"math.h", kMathematics},  {"stdbool.h", kBuiltIn}, {"stddef.h", kDefinitions},
    {"stdint.h", kIntegers}, {"stdio.h", kBuiltIn},     {"stdlib.h", kBuiltIn},  {"string.h", kBuiltIn},
};

}  // namespace

std::vector<Header> headers_for(const std::vector<std::string>& options) {
  const auto exists = [&](const std::string& name) {
    return std::ranges::any_of(options, [&](const std::string& option) {
      std::error_code ignored;
      return option.starts_with("-I") &&
             std::filesystem::exists(std::filesystem::path(option.substr(2)) / name, ignored);
    });
  };
  std::vector<Header> found;
  std::ranges::copy_if(kHeaders, std::back_inserter(found), [&](const Header& header) { return !exists(header.name); });
  for (const char* name : {"array", "bit", "complex", "functional", "limits", "tuple", "type_traits", "utility"}) {
    const std::string of_cuda = fmt::format("cuda/std/{}", name);
    if (!exists(name) && exists(of_cuda))
      found.push_back(
          {name,
           fmt::format("#pragma once\n#include <{}>\nnamespace std {{ using namespace cuda::std; }}\n", of_cuda)});
  }
  return found;
}

std::string types_of_nvcc() {
  return fmt::format(
      "{}\ntypedef unsigned int uint; typedef unsigned short ushort; typedef unsigned long ulong; typedef "
      "long ssize_t;\n",
      std::string_view(kIntegers).substr(std::string_view(kIntegers).find('\n')));
}

bool is_for_host(std::string_view header) {
  static constexpr std::string_view kOthers[] = {
      "cuda.h",
      "cuda_runtime.h",
      "cuda_runtime_api.h",
      "device_launch_parameters.h",
      "hip/hip_runtime.h",
      "hip/hip_runtime_api.h",
      "stdio.h",
      "stdlib.h",
      "getopt.h",
      "mpi.h",
      "omp.h",
      "sys/stat.h",
      "sys/time.h",
      "sys/types.h",
      "time.h",
      "unistd.h",
  };
  // <vector> and the like have no dot; <cuda/std/array> is one of a toolkit
  const bool of_library = !header.empty() && header.find_first_of("./") == std::string_view::npos;
  return of_library || std::ranges::find(kOthers, header) != std::end(kOthers);
}

}  // namespace ergotune::nvrtc
