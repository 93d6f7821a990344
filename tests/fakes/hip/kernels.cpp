// Kernels for the fake libamdhip64: `kernel_NAME` is what it runs for a kernel of that name.
//   doubled(float* y, const float* x, int n)   y = 2 x. A block of 128 takes least time, one of 256 least energy, one
//   of 512 gives an illegal address, one of 1024 ends the process, as a memory fault does, and one of 64 forgets its
//   last number
#include "kernels.hpp"

#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define KERNEL extern "C" __attribute__((visibility("default"))) const fake_hip::Kernel

namespace {

template <class T>
T value_of(const void* argument) {
  T value;
  std::memcpy(&value, argument, sizeof value);
  return value;
}

void pause(double seconds) {
  timespec until{};
  ::clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += static_cast<long>(1e9 * seconds);
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}

double watts(const unsigned block[3]) { return block[0] == 256 ? 100 : 600; }

int doubled(const unsigned*, const unsigned block[3], const void* const* arguments) {
  if (block[0] == 1024) {
    std::fputs("Memory access fault by GPU node-1 on address (nil). Reason: Page not present.\n", stderr);
    std::abort();
  }
  if (block[0] == 512) return 700;
  auto* y = value_of<float*>(arguments[0]);
  const auto* x = value_of<const float*>(arguments[1]);
  const int n = value_of<int>(arguments[2]);
  for (int i = 0; i < n - (block[0] == 64); ++i) y[i] = 2 * x[i];
  pause(block[0] == 128 ? 2e-3 : 3e-3);
  return 0;
}

}  // namespace

KERNEL kernel_doubled;
KERNEL kernel_doubled{{sizeof(float*), sizeof(const float*), sizeof(int)}, watts, doubled};
// what keeps a GPU warm between configurations
KERNEL kernel_ergotune_load;
KERNEL kernel_ergotune_load{{sizeof(float*), sizeof(int)},
                            [](const unsigned*) { return 300.0; },
                            [](const unsigned*, const unsigned*, const void* const*) {
                              pause(5e-4);
                              return 0;
                            }};
