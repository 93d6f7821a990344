// A kernel that the fake run time runs on the host.
#pragma once

#include <cstddef>
#include <vector>

namespace fake_hip {

struct Kernel {
  /// Of its arguments, in bytes.
  std::vector<std::size_t> sizes;
  /// What the GPU draws while it runs.
  double (*watts)(const unsigned block[3]) = nullptr;
  /// 0, or the fault that the next wait sees.
  int (*run)(const unsigned grid[3], const unsigned block[3], const void* const* arguments) = nullptr;
};

}  // namespace fake_hip
