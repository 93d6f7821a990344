#include "power/sensors/sysfs_sensor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "ergotune/error.hpp"

namespace ergotune {

bool exists_unreadable(const Sysfs& sysfs, const std::filesystem::path& path) {
  // checked for the effective user, as when reading
  return sysfs.exists(path) && faccessat(AT_FDCWD, sysfs.real(path).c_str(), R_OK, AT_EACCESS) != 0;
}

const SensorInfo& choose_sensor(const std::string& id, const std::string& family, const std::vector<SensorInfo>& list,
                                const std::vector<std::string>& notes) {
  std::vector<std::string> ids;
  for (const auto& info : list) {
    if (info.id == id || id == family) return info;
    ids.push_back(info.id);
  }
  std::string reasons;
  for (const auto& note : notes) reasons += (reasons.empty() ? "" : "; ") + note;
  if (ids.empty())
    throw UserError(fmt::format("there is no sensor \"{}\" here{}{}", id, reasons.empty() ? "" : ": ", reasons));
  throw UserError(
      fmt::format("there is no sensor \"{}\"{}{}{}", id, suggestion(id, ids), reasons.empty() ? "" : "; ", reasons));
}

}  // namespace ergotune
