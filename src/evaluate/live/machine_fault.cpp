#include "evaluate/live/machine_fault.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "ergotune/error.hpp"
#include "power/nvml_library.hpp"

namespace ergotune {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNoResult =
    "no configuration is at fault, so nothing was stored for it: correct it and run again";

/// The reason why no file can be written in a folder; empty if one can.
std::string unwritable_reason(const fs::path& folder) {
  std::string name = (folder / "ergotune-room-XXXXXX").string();
  const int descriptor = ::mkstemp(name.data());
  if (descriptor < 0) return std::strerror(errno);
  ::unlink(name.c_str());
  const std::string bytes(1 << 18, '\0');
  std::string why;
  if (::write(descriptor, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    why = std::strerror(errno != 0 ? errno : ENOSPC);
  ::close(descriptor);
  return why;
}

fs::path temporary_folder() {
  for (const char* name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"}) {
    if (const char* value = std::getenv(name); value && *value) return value;
  }
  return "/tmp";
}

/// The folder of PoCL's cache.
fs::path pocl_folder() {
  if (const char* own = std::getenv("POCL_CACHE_DIR"); own && *own) return own;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return fs::path(cache) / "pocl" / "kcache";
  if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "pocl" / "kcache";
  return temporary_folder();
}

}  // namespace

std::string full_disk_message(const std::string& message, const char* whose) {
  for (const int error : {ENOSPC, EDQUOT}) {
    if (const char* sign = std::strerror(error); message.find(sign) != std::string::npos)
      return fmt::format(
          "{} has no room for its files ({}); make room, or set TMPDIR, or the folder of its cache, to a place that "
          "has; {}",
          whose, message, kNoResult);
  }
  return {};
}

void throw_machine_fault(Status status, const std::string& message, const DeviceInfo& device) {
  if (usable(status) || status == Status::wrong_result || status == Status::timeout) return;
  if (const std::string full = full_disk_message(message); !full.empty()) throw UserError(full);
  if (message.find(nvml::kLostSuffix) != std::string::npos)
    throw UserError(fmt::format(
        "{}; a reset of the GPU or a restart of the machine brings it back, and the same command goes on from here",
        message));
  const bool host = device.backend == "host";
  if (!host && !(device.backend == "opencl" && device.is_cpu)) return;
  const fs::path folder = host ? temporary_folder() : pocl_folder();
  std::error_code ignored;
  if (!host && !fs::exists(folder, ignored)) return;  // PoCL creates it on demand
  if (const std::string why = unwritable_reason(folder); !why.empty())
    throw UserError(
        fmt::format("no file can be written in {} ({}), where kernels are compiled and loaded; make room there, or set "
                    "{} to a folder that can be used; {}",
                    folder.string(), why, host ? "TMPDIR" : "POCL_CACHE_DIR", kNoResult));
}

}  // namespace ergotune
