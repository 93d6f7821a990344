#include "base/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

namespace ergotune {

std::optional<std::string> read_file(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  std::string text;
  char buffer[1 << 16];
  ssize_t n = 0;
  do {
    n = ::read(descriptor, buffer, sizeof buffer);
    if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
  } while (n > 0 || (n < 0 && errno == EINTR));
  const int trouble = errno;
  ::close(descriptor);
  if (n == 0) return text;
  errno = trouble;
  return std::nullopt;
}

namespace {

int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) return errno;
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

}  // namespace

int write_file(const std::filesystem::path& file, std::string_view bytes) {
  static std::atomic<unsigned> number{0};  // threads of one process may write the same file
  const std::string fresh = fmt::format("{}.{}-{}", file.string(), ::getpid(), ++number);
  const int descriptor = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return errno;
  int trouble = write_all(descriptor, bytes);
  if (::close(descriptor) != 0 && trouble == 0) trouble = errno;
  if (trouble == 0 && std::rename(fresh.c_str(), file.c_str()) != 0) trouble = errno;
  if (trouble != 0) ::unlink(fresh.c_str());
  return trouble;
}

}  // namespace ergotune
