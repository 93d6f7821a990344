#include "evaluate/live/channel.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/clock.hpp"

namespace ergotune::protocol {

Channel::Channel(Channel&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), reader_(std::move(other.reader_)) {}

Channel& Channel::operator=(Channel&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(reader_, other.reader_);
  return *this;
}

Channel::~Channel() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Channel::send(const Message& message) {
  const std::string frame = encode(message);
  std::size_t sent = 0;
  while (sent < frame.size()) {
    const ssize_t n = ::send(descriptor_, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
    } else if (n < 0 && errno != EINTR) {
      throw Disconnected();
    }
  }
}

std::optional<Message> Channel::receive(double seconds) {
  const double deadline = host_seconds() + seconds;
  char bytes[16384];
  while (true) {
    if (auto message = reader_.next()) return message;
    const bool only_look = seconds == 0;
    if (seconds > 0) {
      pollfd polled{descriptor_, POLLIN, 0};
      const double left = std::max(0.0, deadline - host_seconds());
      const int ready = ::poll(&polled, 1, static_cast<int>(std::min(std::ceil(left * 1000), 1e9)));
      if (ready == 0) return std::nullopt;
      if (ready < 0 && errno != EINTR) throw Disconnected();
      if (ready < 0) continue;
    }
    const ssize_t n = ::recv(descriptor_, bytes, sizeof bytes, only_look ? MSG_DONTWAIT : 0);
    if (n < 0 && only_look && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (n > 0) {
      reader_.append({bytes, static_cast<std::size_t>(n)});
    } else if (n == 0 || errno != EINTR) {
      throw Disconnected();
    }
  }
}

SocketPair make_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(fmt::format("cannot make a socket pair: {}", std::strerror(errno)));
  }
  return {ends[0], ends[1]};
}

}  // namespace ergotune::protocol
