#include "cluster/agent_pipe.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.hpp"

namespace ergotune::agents {
namespace {

/// A closed pipe must not end the process: sockets use MSG_NOSIGNAL, and agents ignore SIGPIPE.
ssize_t write_some(int descriptor, const char* bytes, std::size_t count) {
  const ssize_t sent = ::send(descriptor, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent < 0 && errno == ENOTSOCK ? ::write(descriptor, bytes, count) : sent;
}

}  // namespace

Pipe::Pipe(int in, int out, std::size_t preamble)
    : in_(in), out_(out), cutter_(kKind, preamble), heard_at_(host_seconds()), said_at_(heard_at_) {
  for (const int descriptor : {in_, out_}) ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

Pipe::~Pipe() {
  ::close(in_);
  if (out_ != in_) ::close(out_);
}

void Pipe::send(const Message& message) {
  unsent_ += encode(message);
  said_at_ = host_seconds();
  flush();
}

void Pipe::flush() {
  while (!broken_ && unsent() > 0) {
    const ssize_t n = write_some(out_, unsent_.data() + sent_, unsent());
    if (n > 0) {
      sent_ += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      broken_ = true;
      ::shutdown(out_, SHUT_WR);  // the other end hears of it now; what it said before is still to be read
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

std::optional<Message> Pipe::next() {
  char bytes[16384];
  while (true) {
    if (const auto frame = cutter_.next()) return decode(frame->type, frame->payload);
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

}  // namespace ergotune::agents
