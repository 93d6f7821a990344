#include "evaluate/live/data_files.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "ergotune/argument.hpp"
#include "ergotune/problem.hpp"

namespace ergotune {
namespace {

/// Returns a descriptor of a memory file with these contents; -1 on failure.
int file_of(const std::vector<std::uint8_t>& contents) {
  const int file = ::memfd_create("ergotune-data", MFD_CLOEXEC);
  for (std::size_t at = 0; file >= 0 && at < contents.size();) {
    const ssize_t written = ::write(file, contents.data() + at, contents.size() - at);
    if (written > 0) {
      at += static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      ::close(file);
      return -1;
    }
  }
  return file;
}

}  // namespace

DataFiles::~DataFiles() {
  for (const int descriptor : descriptors_) ::close(descriptor);
}

Problem DataFiles::lay_out(Problem problem) {
  constexpr std::size_t kLarge = std::size_t{1} << 16;
  for (Kernel& kernel : problem.kernels) {
    for (Argument& argument : kernel.arguments) {
      Fill& fill = argument.fill;
      if (fill.kind != Fill::Kind::data || !fill.data || fill.data->size() < kLarge) continue;
      const int file = file_of(*fill.data);
      if (file < 0) continue;  // the array is then part of the setup message
      descriptors_.push_back(file);
      fill.kind = Fill::Kind::file;
      fill.file = fmt::format("/proc/{}/fd/{}", ::getpid(), file);
      fill.data.reset();
    }
  }
  return problem;
}

}  // namespace ergotune
