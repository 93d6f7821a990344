// The session's side of the supervising process.
#include "program/supervisor.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "ergotune/error.hpp"

namespace ergotune {

std::string encode(const SupervisorMessage& message) { return encode_message(kSupervisorKind, message); }

SupervisorMessage decode(const Frame& frame, std::type_identity<SupervisorMessage>) {
  return decode_message<SupervisorMessage>(kSupervisorKind, frame);
}

void Supervisor::start() {
  std::vector<std::string> command = command_;
  command.insert(command.end(), {"--descriptor", "3"});
  try {
    const SocketPair sockets = make_socket_pair();
    try {
      process_ = ChildProcess::start(command, {}, sockets.theirs);
    } catch (...) {
      ::close(sockets.ours);
      ::close(sockets.theirs);
      throw;
    }
    ::close(sockets.theirs);
    const std::lock_guard lock(mutex_);
    stream_.emplace(kSupervisorKind, sockets.ours, sockets.ours);
  } catch (const Error& error) {
    throw NoProcess(error.what());
  }
}

void Supervisor::end() {
  {
    const std::lock_guard lock(mutex_);
    stream_.reset();
  }
  // It ends the processes that it started first, for which it may need some time.
  if (process_) (void)process_->wait(kLongestEnd + 5);
  process_.reset();
}

Supervisor::~Supervisor() { end(); }

void Supervisor::stop() {
  const std::lock_guard lock(mutex_);
  if (!stream_) return;
  stopping_ = true;
  ::shutdown(stream_->in(), SHUT_RDWR);
}

void Supervisor::forget_stop() {
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(stopping_, false)) return;
  }
  end();
}

SupervisedResult Supervisor::run(const SupervisedRun& what) {
  if (!stream_) start();
  try {
    stream_->send(what);
    auto result = std::get<SupervisedResult>(*stream_->receive(-1));
    if (!result.nothing_starts.empty()) throw NoProcess(result.nothing_starts);
    return result;
  } catch (const Disconnected&) {
    end();
    const std::lock_guard lock(mutex_);
    if (!std::exchange(stopping_, false)) throw Error("the process that runs programs ended unexpectedly");
    SupervisedResult stopped;
    stopped.stopped = true;
    return stopped;
  }
}

}  // namespace ergotune
