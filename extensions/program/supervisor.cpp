// The side of whoever asks.
#include "program/supervisor.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/serialise.hpp"
#include "ergotune/error.hpp"
#include "program/supervisor_frames.hpp"

namespace ergotune {

namespace supervising {

bool send_frame(int socket, const std::string& payload) {
  const std::uint64_t size = payload.size();
  std::string frame(reinterpret_cast<const char*>(&size), sizeof size);
  frame += payload;
  for (std::size_t sent = 0; sent < frame.size();) {
    const ssize_t n = ::send(socket, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (n > 0)
      sent += static_cast<std::size_t>(n);
    else if (n == 0 || errno != EINTR)
      return false;
  }
  return true;
}

static bool receive_all(int socket, char* into, std::size_t size) {
  for (std::size_t got = 0; got < size;) {
    const ssize_t n = ::recv(socket, into + got, size - got, 0);
    if (n > 0)
      got += static_cast<std::size_t>(n);
    else if (n == 0 || errno != EINTR)
      return false;
  }
  return true;
}

std::optional<std::string> receive_frame(int socket) {
  std::uint64_t size = 0;
  if (!receive_all(socket, reinterpret_cast<char*>(&size), sizeof size) || size > kLargestFrame) return std::nullopt;
  std::string payload(static_cast<std::size_t>(size), '\0');
  if (!receive_all(socket, payload.data(), payload.size())) return std::nullopt;
  return payload;
}

}  // namespace supervising

using namespace supervising;

void Supervisor::start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw NoProcess(std::string("cannot make a socket pair: ") + std::strerror(errno));
  std::vector<std::string> command = command_;
  command.insert(command.end(), {"--descriptor", "3"});
  try {
    process_ = ChildProcess::start(command, {}, ends[1]);
  } catch (const Error& error) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw NoProcess(error.what());
  }
  ::close(ends[1]);
  const std::lock_guard lock(mutex_);
  socket_ = ends[0];
}

void Supervisor::end() {
  {
    const std::lock_guard lock(mutex_);
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  // It ends what it has started first, which takes as long as the system needs for that.
  if (process_) (void)process_->wait(kLongestEnd + 5);
  process_.reset();
}

Supervisor::~Supervisor() { end(); }

void Supervisor::stop() {
  const std::lock_guard lock(mutex_);
  if (socket_ < 0) return;
  stopping_ = true;
  ::shutdown(socket_, SHUT_RDWR);
}

void Supervisor::forget_stop() {
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(stopping_, false)) return;
  }
  end();
}

SupervisedResult Supervisor::run(const SupervisedRun& what) {
  if (socket_ < 0) start();
  std::optional<std::string> answer;
  if (send_frame(socket_, Writer()(what).take())) answer = receive_frame(socket_);
  if (!answer) {
    end();
    const std::lock_guard lock(mutex_);
    if (!std::exchange(stopping_, false)) throw Error("the process that runs programs ended unexpectedly");
    SupervisedResult stopped;
    stopped.stopped = true;
    return stopped;
  }
  Reader reader(*answer);
  auto result = reader.take<SupervisedResult>();
  if (!result.nothing_starts.empty()) throw NoProcess(result.nothing_starts);
  return result;
}

}  // namespace ergotune
