#include "base/kernel_source/device_code.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace ergotune::kernel_source {
namespace {

constexpr std::string_view kProgram = R"(#include <thrust/device_vector.h>
#include <vector>
#define DEVICE __device__ __forceinline__
#define WIDTH kWidth
using namespace std;
using namespace std::chrono;
using real = float;
const int kWidth = 4, kUnused = 3;
struct Options { std::string name; int count; };
struct alignas(16) Cell { real value[kWidth]; };
enum Mode { SUM, MAXIMUM };
typedef struct { float x; } Body;
typedef enum { SMALL, LARGE } Size;
static struct { int unused; } state;
struct Timer { cudaEvent_t cells, data; };
static_assert(BLOCK * PER <= 4096, "too much work");
static_assert(sizeof(Options) > 4, "of the host");
constexpr int kLimit = 8, kHalf = kLimit / 2;
static_assert(BLOCK <= kHalf, "constants");
std::vector<float> data;
void check(cudaError_t error);
namespace detail {
constexpr int doubled(int n) { return 2 * n; }
DEVICE real twice(real x) { return doubled(1) * x; }
}  // namespace detail
template <class T> __global__ void kernel(Cell* cells, T* data) {
  Body body{SMALL};
  if (MAXIMUM) data[0] = detail::twice(cells[0].value[WIDTH - 1]);
}
template <class T> void launch(T* data) {
#ifdef VERBOSE
  printf("launch {\n");
#endif
  kernel<T><<<1, 1>>>(nullptr, data);
}
int main() {
  thrust::device_vector<float> x(4);
  launch(x.data());
}
)";

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

TEST(DeviceCode, KeepsWhatKernelsUse) {
  const std::string code = device_code_of(kProgram);
  for (const char* part :
       {"using real = float;", "kWidth = 4", "struct alignas(16) Cell { real value[kWidth]; };",
        "enum Mode { SUM, MAXIMUM };", "typedef struct { float x; } Body;", "typedef enum { SMALL, LARGE } Size;",
        "constexpr int doubled", "DEVICE real twice", "#include <vector>",
        "template <class T> __global__ void kernel(Cell* cells, T* data) {", "namespace detail {",
        "static_assert(BLOCK * PER <= 4096,", "static_assert(BLOCK <= kHalf,", "kLimit = 8"})
    EXPECT_TRUE(has(code, part)) << part;
}

TEST(DeviceCode, LeavesOutHostCodeInItsLines) {
  const std::string code = device_code_of(kProgram);
  for (const char* part : {"main", "launch(", "<<<", "Options", "std::vector<float> data", "check", "thrust", "Timer",
                           "state", "sizeof(Options)", "chrono"})
    EXPECT_FALSE(has(code, part)) << part;
  EXPECT_EQ(code.size(), kProgram.size());
  EXPECT_EQ(code.find("__global__"), kProgram.find("__global__"));
  EXPECT_EQ(std::ranges::count(code, '\n'), std::ranges::count(kProgram, '\n'));
  EXPECT_TRUE(has(code, "#ifdef VERBOSE") && has(code, "#endif")) << "conditions remain in pairs";
}

TEST(DeviceCode, KeepsFunctionsThatAMacroOfAHeaderMayMark) {
  const std::string code = device_code_of(
      "#include \"marks.h\"\nHOST_DEVICE float f(float x) { return x; }\nMARK float unused() { return 1; }\n"
      "__global__ void k(float* x) { x[0] = f(x[1]); }\n");
  EXPECT_TRUE(has(code, "HOST_DEVICE float f"));
  EXPECT_FALSE(has(code, "unused"));
}

TEST(DeviceCode, OfASourceWithoutBalancedBracesIsTheSource) {
  for (const char* source : {"__global__ void k() {}\nint main() {", "#if A\nint f() {\n#else\nint g() {\n#endif\n}\n"})
    EXPECT_EQ(device_code_of(source), source);
}

}  // namespace
}  // namespace ergotune::kernel_source
