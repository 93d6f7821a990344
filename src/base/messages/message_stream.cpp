#include "base/messages/message_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

namespace ergotune {
namespace {

/// A closed pipe must not end the process: sockets use MSG_NOSIGNAL, and processes with pipes ignore SIGPIPE.
ssize_t write_some(int descriptor, const char* bytes, std::size_t count) {
  const ssize_t sent = ::send(descriptor, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent < 0 && errno == ENOTSOCK ? ::write(descriptor, bytes, count) : sent;
}

}  // namespace

FrameStream::FrameStream(const FrameKind& kind, int in, int out, std::size_t preamble)
    : in_(in), out_(out), cutter_(kind, preamble), heard_at_(host_seconds()), sent_at_(heard_at_) {
  for (const int descriptor : {in_, out_})
    if (descriptor >= 0) ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

FrameStream::~FrameStream() {
  if (in_ >= 0) ::close(in_);
  if (out_ >= 0 && out_ != in_) ::close(out_);
}

short FrameStream::events() const { return static_cast<short>(POLLIN | (unsent() > 0 ? POLLOUT : 0)); }

void FrameStream::post_frame(const std::string& frame) {
  unsent_ += frame;
  sent_at_ = host_seconds();
  flush();
}

void FrameStream::send_frame(const std::string& frame) {
  post_frame(frame);
  while (unsent() > 0) {
    pollfd polled{out_, POLLOUT, 0};
    ::poll(&polled, 1, -1);
    flush();
  }
  if (broken_) throw Disconnected();
}

void FrameStream::flush() {
  while (!broken_ && unsent() > 0) {
    const ssize_t n = write_some(out_, unsent_.data() + sent_, unsent());
    if (n > 0) {
      sent_ += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      broken_ = true;
      ::shutdown(out_, SHUT_WR);  // the other end notices it now, but can still read earlier messages
    }
  }
  if (broken_ || unsent() == 0) {
    unsent_.clear();
    sent_ = 0;
  } else if (sent_ >= unsent_.size() / 2) {
    unsent_.erase(0, sent_);
    sent_ = 0;
  }
}

std::optional<Frame> FrameStream::next_frame() {
  char bytes[16384];
  while (true) {
    if (const auto frame = cutter_.next()) return frame;
    if (ended_) return std::nullopt;
    const ssize_t n = ::read(in_, bytes, sizeof bytes);
    if (n > 0) {
      heard_at_ = host_seconds();
      cutter_.append({bytes, static_cast<std::size_t>(n)});
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return std::nullopt;
    } else if (n == 0 || errno != EINTR) {
      ended_ = true;
    }
  }
}

bool FrameStream::wait(double seconds) const {
  pollfd polled{in_, POLLIN, 0};
  return ::poll(&polled, 1, seconds < 0 ? -1 : static_cast<int>(std::min(std::ceil(seconds * 1000), 1e9))) != 0;
}

SocketPair make_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(fmt::format("cannot make a socket pair: {}", std::strerror(errno)));
  return {ends[0], ends[1]};
}

}  // namespace ergotune
