#include "base/process/file_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace ergotune {
namespace {

/// True if the open file still has this name, since the last holder deletes it.
bool still_there(int descriptor, const std::filesystem::path& file) {
  struct stat open {
  }, named{};
  return ::fstat(descriptor, &open) == 0 && ::stat(file.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
         open.st_dev == named.st_dev;
}

/// An existing file is opened without O_CREAT, which the system rejects for files of other users in folders such as
/// /tmp.
int open_or_make(const std::filesystem::path& file, bool for_all) {
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW;
  for (int turn = 0; turn < 10; ++turn) {
    int descriptor = ::open(file.c_str(), O_RDWR | kFlags);
    if (descriptor < 0 && errno == EACCES) descriptor = ::open(file.c_str(), O_RDONLY | kFlags);
    if (descriptor >= 0 || errno != ENOENT) return descriptor;
    descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | kFlags, 0644);
    if (descriptor >= 0 && for_all) (void)!::fchmod(descriptor, 0666);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
  return -1;
}

long number_in(int descriptor) {
  char text[32] = {};
  return ::pread(descriptor, text, sizeof text - 1, 0) > 0 ? std::strtol(text, nullptr, 10) : 0;
}

}  // namespace

bool FileLock::take(std::error_code& failure) {
  failure.clear();
  while (true) {
    const int descriptor = open_or_make(file_, for_all_);
    if (descriptor < 0) {
      failure.assign(errno, std::generic_category());
      return true;
    }
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      holder_ = number_in(descriptor);
      ::close(descriptor);
      return false;
    }
    if (still_there(descriptor, file_)) {
      descriptor_ = descriptor;
      break;
    }
    ::close(descriptor);
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, pid.data(), pid.size(), 0) < 0) {
    // Ignored: only messages of other processes lack the process id.
  }
  return true;
}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  ::unlink(file_.c_str());
  // a child forked meanwhile shares the lock and must not keep it
  ::flock(descriptor_, LOCK_UN);
  ::close(descriptor_);
}

}  // namespace ergotune
