// What a child process says on its standard error.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace ergotune {

/// A child's standard error: memory, so that a crash in the middle of a word loses nothing.
class ChildLog {
 public:
  // Its number is above those that a child's standard streams and its socket take.
  ChildLog() {
    const int fresh = ::memfd_create("ergotune-worker-log", MFD_CLOEXEC);
    if (fresh < 0) return;
    descriptor_ = ::fcntl(fresh, F_DUPFD_CLOEXEC, 10);
    ::close(fresh);
  }
  ChildLog(const ChildLog&) = delete;
  ChildLog& operator=(const ChildLog&) = delete;
  ~ChildLog() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int descriptor() const { return descriptor_; }

  /// What stands here now is no longer of interest.
  void begin() {
    struct stat now {};
    if (descriptor_ >= 0 && ::fstat(descriptor_, &now) == 0) begin_ = now.st_size;
  }
  std::string end_of_text() const {
    const off_t size = descriptor_ >= 0 ? ::lseek(descriptor_, 0, SEEK_END) : 0;
    if (size <= begin_) return {};
    const off_t from = std::max<off_t>(begin_, size - static_cast<off_t>(kLastWords));
    std::string text(static_cast<std::size_t>(size - from), '\0');
    const ssize_t n = ::pread(descriptor_, text.data(), text.size(), from);
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
  }

 private:
  static constexpr std::size_t kLastWords = 2000;

  int descriptor_ = -1;
  off_t begin_ = 0;
};

}  // namespace ergotune
