#include "base/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <system_error>

#include "ergotune/error.hpp"

namespace ergotune {

std::optional<std::string> read_file(const std::filesystem::path& file, std::size_t most) {
  // O_NONBLOCK: a FIFO without a writer reads as empty instead of blocking forever.
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  if (const int flags = ::fcntl(descriptor, F_GETFL); flags >= 0) ::fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK);
  std::string text;
  std::vector<char> buffer(1 << 16);  // not on the stack, which may be small
  ssize_t n = 0;
  do {
    n = ::read(descriptor, buffer.data(), buffer.size());
    if (n > 0) text.append(buffer.data(), static_cast<std::size_t>(n));
    if (text.size() > most) {
      ::close(descriptor);
      errno = EFBIG;
      return std::nullopt;
    }
  } while (n > 0 || (n < 0 && errno == EINTR));
  const int failure = errno;
  ::close(descriptor);
  if (n == 0) return text;
  errno = failure;
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

int write_file(const std::filesystem::path& name, std::string_view bytes) {
  std::error_code ignored;
  const auto status = std::filesystem::status(name, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
      !std::filesystem::is_directory(status)) {
    const int descriptor = ::open(name.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return errno;
    const int failure = write_all(descriptor, bytes);
    return ::close(descriptor) != 0 && failure == 0 ? errno : failure;
  }
  const std::filesystem::path target = std::filesystem::is_symlink(std::filesystem::symlink_status(name, ignored))
                                           ? std::filesystem::weakly_canonical(name, ignored)
                                           : name;
  const std::filesystem::path file = target.empty() ? name : target;
  static std::atomic<unsigned> number{0};  // threads of one process may write the same file
  const std::string fresh = fmt::format("{}.{}-{}", file.string(), ::getpid(), ++number);
  const int descriptor = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return errno;
  int failure = write_all(descriptor, bytes);
  if (::close(descriptor) != 0 && failure == 0) failure = errno;
  if (failure == 0 && std::rename(fresh.c_str(), file.c_str()) != 0) failure = errno;
  if (failure != 0) ::unlink(fresh.c_str());
  return failure;
}

void write_named_file(const std::filesystem::path& file, std::string_view bytes) {
  const int failure = write_file(file, bytes);
  if (failure == 0) return;
  const char* what = failure == ENOENT   ? "its folder is not there"
                     : failure == EISDIR ? "a folder has that name"
                                         : std::strerror(failure);
  throw UserError(fmt::format("cannot be written ({}); name another file, or correct that", what),
                  {file.string(), 0, 0});
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_symlink(file, error)) return file.parent_path();
  const std::filesystem::path real = std::filesystem::canonical(file, error);
  return error ? file.parent_path() : real.parent_path();
}

std::string network_filesystem(const std::filesystem::path& folder) {
  struct statfs status {};
  if (::statfs(folder.empty() ? "." : folder.c_str(), &status) != 0) return {};
  static const std::map<std::uint32_t, const char*> kNames{
      {0x6969, "NFS"},      {0xff534d42, "CIFS"},   {0xfe534d42, "SMB"},   {0x0bd00bd0, "Lustre"},
      {0x47504653, "GPFS"}, {0x19830326, "BeeGFS"}, {0x00c36400, "CephFS"}};
  const auto found = kNames.find(static_cast<std::uint32_t>(status.f_type));
  return found == kNames.end() ? std::string() : found->second;
}

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
