#include "base/process/descendants.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace ergotune {

std::vector<pid_t> descendants_of(pid_t pid) {
  std::vector<pid_t> found;
  std::error_code error;
  // A child stands below the thread that started it.
  const std::filesystem::directory_iterator threads("/proc/" + std::to_string(pid) + "/task", error), none;
  for (auto thread = threads; !error && thread != none; thread.increment(error)) {
    std::ifstream children(thread->path() / "children");
    for (pid_t child = 0; children >> child;) {
      found.push_back(child);
      const std::vector<pid_t> below = descendants_of(child);
      found.insert(found.end(), below.begin(), below.end());
    }
  }
  return found;
}

}  // namespace ergotune
