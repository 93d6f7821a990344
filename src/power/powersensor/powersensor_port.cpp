#include "power/powersensor/powersensor_port.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "ergotune/error.hpp"

namespace ergotune {

PowersensorPort::PowersensorPort(const std::string& path) : path_(path) {
  // non-blocking, since opening a line without carrier would block forever
  descriptor_ = ::open(path.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) {
    const std::string advice = errno == EACCES ? "; be a member of its group (often \"dialout\")" : "";
    throw UserError(fmt::format("cannot open {}: {}{}", path, std::strerror(errno), advice));
  }
  const auto fail = [&](const std::string& message) {
    ::close(descriptor_);
    throw UserError(message);
  };
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) fail(fmt::format("{} is in use by another program", path));
  termios line{};
  if (tcgetattr(descriptor_, &line) != 0) fail(fmt::format("{} is not a serial line", path));
  cfmakeraw(&line);
  line.c_cflag = (line.c_cflag & ~static_cast<tcflag_t>(CSIZE | PARENB | CSTOPB | CRTSCTS)) | CS8 | CLOCAL | CREAD;
  line.c_cc[VMIN] = 1;
  line.c_cc[VTIME] = 0;
  cfsetspeed(&line, B4000000);  // USB ignores it; the bridge of older Arduinos uses its highest rate
  if (tcsetattr(descriptor_, TCSANOW, &line) != 0) fail(fmt::format("{}: {}", path, std::strerror(errno)));
  tcflush(descriptor_, TCIFLUSH);
}

PowersensorPort::~PowersensorPort() { ::close(descriptor_); }

std::size_t PowersensorPort::read_some(std::span<unsigned char> out, double seconds) {
  pollfd wait{descriptor_, POLLIN};
  if (poll(&wait, 1, static_cast<int>(seconds * 1000)) <= 0) return 0;
  const ssize_t n = TEMP_FAILURE_RETRY(::read(descriptor_, out.data(), out.size()));
  if (n > 0) return static_cast<std::size_t>(n);
  if (n < 0 && errno == EAGAIN) return 0;
  throw Error(fmt::format("{} was disconnected", path_));
}

bool PowersensorPort::read_exactly(std::span<unsigned char> out, double seconds) {
  const double end = host_seconds() + seconds;
  while (!out.empty()) {
    const double left = end - host_seconds();
    if (left <= 0) return false;
    out = out.subspan(read_some(out, left));
  }
  return true;
}

void PowersensorPort::write(std::span<const unsigned char> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = TEMP_FAILURE_RETRY(::write(descriptor_, bytes.data(), bytes.size()));
    if (n > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    } else if (n < 0 && errno == EAGAIN) {
      pollfd wait{descriptor_, POLLOUT};
      if (poll(&wait, 1, 1000) < 1) throw Error(fmt::format("{} takes no bytes", path_));
    } else {
      throw Error(fmt::format("{} was disconnected", path_));
    }
  }
}

void PowersensorPort::write(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  write(std::span(&value, 1));
}

void PowersensorPort::drain(double seconds) {
  unsigned char dropped[4096];
  const double end = host_seconds() + 10 * seconds;
  while (host_seconds() < end && read_some(dropped, seconds) > 0) {
  }
}

}  // namespace ergotune
