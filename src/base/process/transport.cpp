#include "base/process/transport.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace ergotune {

// The descriptor must be above those of the child's standard streams and socket.
ChildLog::ChildLog() {
  const int fresh = ::memfd_create("ergotune-worker-log", MFD_CLOEXEC);
  if (fresh < 0) return;
  descriptor_ = ::fcntl(fresh, F_DUPFD_CLOEXEC, 10);
  ::close(fresh);
}

ChildLog::~ChildLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ChildLog::begin() {
  struct stat now {};
  if (descriptor_ >= 0 && ::fstat(descriptor_, &now) == 0) begin_ = now.st_size;
}

std::string ChildLog::end_of_text() const {
  constexpr off_t kLongest = 2000;
  const off_t size = descriptor_ >= 0 ? ::lseek(descriptor_, 0, SEEK_END) : 0;
  if (size <= begin_) return {};
  const off_t from = std::max(begin_, size - kLongest);
  std::string text(static_cast<std::size_t>(size - from), '\0');
  const ssize_t n = ::pread(descriptor_, text.data(), text.size(), from);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

ProcessEnding ChildLog::ending(int status) const {
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return {signal ? fmt::format("signal {} ({})", signal, strsignal(signal))
                 : fmt::format("exit code {}", WEXITSTATUS(status)),
          signal, end_of_text()};
}

}  // namespace ergotune
