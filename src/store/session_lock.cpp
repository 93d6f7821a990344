#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "ergotune/base/error.hpp"
#include "ergotune/store/store.hpp"

namespace ergotune {
namespace {

/// Whether the open file is still the one of that name: its last holder removes it when it is done.
bool still_there(int descriptor, const std::filesystem::path& file) {
  struct stat open {
  }, named{};
  return ::fstat(descriptor, &open) == 0 && ::stat(file.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

long holder(int descriptor) {
  char text[32] = {};
  return ::pread(descriptor, text, sizeof text - 1, 0) > 0 ? std::strtol(text, nullptr, 10) : 0;
}

}  // namespace

SessionLock::SessionLock(const std::filesystem::path& store, std::int64_t session)
    : file_(fmt::format("{}-session{}.lock", store.string(), session)) {
  while (true) {
    descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor_ < 0)
      throw UserError(fmt::format("cannot make the lock of a session: {}", std::strerror(errno)),
                      {file_.string(), 0, 0});
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      const long pid = holder(descriptor_);
      ::close(descriptor_);
      throw UserError(
          fmt::format(
              "session {} is being tuned by {}; wait until it has ended (then this command goes on from "
              "its results), or give this run a store of its own with --store",
              session, pid > 0 ? fmt::format("process {}", pid) : std::string("another process")),
          {store.string(), 0, 0});
    }
    // A file system without locks is used without one.
    if (still_there(descriptor_, file_)) break;
    ::close(descriptor_);
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, pid.data(), pid.size(), 0) < 0) {
    // Only the message of others is the poorer for it.
  }
}

SessionLock::~SessionLock() {
  ::unlink(file_.c_str());
  ::close(descriptor_);
}

}  // namespace ergotune
