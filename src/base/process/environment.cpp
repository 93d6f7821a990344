#include "base/process/environment.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>

namespace ergotune {

std::string environment_variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

std::filesystem::path user_folder(const char* variable, const char* below_home) {
  const std::filesystem::path own = environment_variable(variable), home = environment_variable("HOME");
  if (own.is_absolute()) return own / "ergotune";
  return home.is_absolute() ? home / below_home / "ergotune" : std::filesystem::path();
}

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
