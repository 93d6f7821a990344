#include "base/process/leftovers.hpp"

#include <system_error>

namespace ergotune {

std::vector<std::filesystem::path> left_behind(const std::filesystem::path& folder, std::string_view prefix,
                                               std::chrono::hours age) {
  namespace fs = std::filesystem;
  const auto before = fs::file_time_type::clock::now() - age;
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(prefix)) continue;
    std::error_code gone;
    const auto written = entry->last_write_time(gone);
    if (!gone && written < before) found.push_back(entry->path());
  }
  return found;
}

}  // namespace ergotune
