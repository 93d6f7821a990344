#include "base/sysfs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/process/environment.hpp"

namespace ergotune {

std::string normalise_pci_address(std::string_view address) {
  // Split at ':' and '.': [domain:]bus:device[.function]
  unsigned function = 0;
  if (const auto dot = address.rfind('.'); dot != std::string_view::npos) {
    const auto digits = address.substr(dot + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), function, 16);
    if (error != std::errc{} || end != digits.data() + digits.size()) return {};
    address = address.substr(0, dot);
  }
  std::vector<unsigned> parts;
  while (true) {
    const auto colon = address.find(':');
    const auto digits = address.substr(0, colon);
    unsigned value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size()) return {};
    parts.push_back(value);
    if (colon == std::string_view::npos) break;
    address = address.substr(colon + 1);
  }
  if (parts.size() == 2) parts.insert(parts.begin(), 0u);
  if (parts.size() != 3) return {};
  return fmt::format("{:08x}:{:02x}:{:02x}.{:x}", parts[0], parts[1], parts[2], function);
}

Sysfs Sysfs::from_environment() {
  const std::string root = environment_variable("ERGOTUNE_SYSFS_ROOT");
  return Sysfs(root.empty() ? "/" : root);
}

std::filesystem::path Sysfs::real(const std::filesystem::path& path) const { return root_ / path.relative_path(); }

bool Sysfs::exists(const std::filesystem::path& path) const {
  std::error_code code;
  return std::filesystem::exists(real(path), code);
}

std::optional<std::string> Sysfs::read(const std::filesystem::path& path) const {
  const int file = ::open(real(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string text;
  char buffer[4096];
  ssize_t n;
  while ((n = ::read(file, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR)) {
    if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
  }
  ::close(file);
  if (n < 0) return std::nullopt;
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

std::optional<long long> Sysfs::read_integer(const std::filesystem::path& path) const {
  const auto text = read(path);
  if (!text) return std::nullopt;
  long long value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

int Sysfs::write(const std::filesystem::path& path, const std::string& text) const {
  const int file = ::open(real(path).c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (file < 0) return errno;
  int error = 0;
  ssize_t n;
  do {
    n = ::write(file, text.data(), text.size());
  } while (n < 0 && errno == EINTR);
  if (n < 0)
    error = errno;
  else if (static_cast<std::size_t>(n) != text.size())
    error = EIO;
  if (::close(file) != 0 && error == 0) error = errno;
  return error;
}

std::vector<std::string> Sysfs::list(const std::filesystem::path& folder) const {
  std::vector<std::string> names;
  std::error_code code;
  for (std::filesystem::directory_iterator it(real(folder), code), end; !code && it != end; it.increment(code))
    names.push_back(it->path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace ergotune
