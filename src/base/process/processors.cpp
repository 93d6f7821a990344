#include "base/process/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <memory>
#include <thread>

namespace ergotune {

unsigned usable_processors() {
  constexpr int kMost = 8192;
  struct Free {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
  };
  const std::unique_ptr<cpu_set_t, Free> set(CPU_ALLOC(kMost));
  const std::size_t bytes = CPU_ALLOC_SIZE(kMost);
  if (set && ::sched_getaffinity(0, bytes, set.get()) == 0)
    return static_cast<unsigned>(std::max(1, CPU_COUNT_S(bytes, set.get())));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace ergotune
