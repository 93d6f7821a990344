// Workers that are children of this process, at the other end of a socket pair.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/live_file.hpp"
#include "base/process/descendants.hpp"
#include "base/process/process.hpp"
#include "evaluate/live/child_log.hpp"
#include "evaluate/live/link.hpp"

namespace ergotune {
namespace {

ChildProcess start_worker(std::vector<std::string> command, int socket, int log) {
  command.insert(command.end(), {"--descriptor", "3"});
  if (log >= 0) {
    command.insert(command.end(), {"--log", std::to_string(log)});
    // The log is inherited under its own number: only this child may have it, so it is open across exec just
    // now.
    ::fcntl(log, F_SETFD, 0);
  }
  try {
    ProcessOptions options;
    if (const auto live = live_path(); !live.empty()) options.environment["ERGOTUNE_LIVE"] = live.string();
    ChildProcess process = ChildProcess::start(command, options, socket);
    if (log >= 0) ::fcntl(log, F_SETFD, FD_CLOEXEC);
    ::close(socket);
    return process;
  } catch (...) {
    ::close(socket);
    throw;
  }
}

class ChildTransport final : public WorkerTransport {
 public:
  ChildTransport(const std::vector<std::string>& command, protocol::SocketPair sockets)
      : WorkerTransport(protocol::Channel(sockets.ours)),
        process_(start_worker(command, sockets.theirs, log_.descriptor())) {}
  ~ChildTransport() override { kill(); }
  void asked() override { log_.begin(); }

  Ending end() override {
    kill();
    Ending ending;
    const int status = process_.wait().value_or(0);
    if (WIFSIGNALED(status)) {
      ending.signal = WTERMSIG(status);
      ending.words = fmt::format("signal {} ({})", ending.signal, strsignal(ending.signal));
    } else {
      ending.words = fmt::format("exit code {}", WEXITSTATUS(status));
    }
    ending.last_words = log_.end_of_text();
    return ending;
  }
  int process() const override { return std::max(0, process_.pid()); }

 private:
  // With all its descendants: a compiler that a worker runs lives in a group of its own.
  void kill() {
    if (process_.pid() <= 0) return;
    const std::vector<pid_t> descendants = descendants_of(process_.pid());
    process_.kill(SIGKILL);
    for (const pid_t pid : descendants) ::kill(pid, SIGKILL);
  }

  ChildLog log_;
  ChildProcess process_;
};

}  // namespace

StartLink start_children(std::vector<std::string> command) {
  return [command = std::move(command)](const protocol::Setup& setup) {
    auto link = std::make_unique<ChildTransport>(command, protocol::make_socket_pair());
    try {
      link->channel().send(setup);
    } catch (const protocol::Disconnected&) {
      // it has died already: whoever waits for its answer will see that
    }
    return link;
  };
}

}  // namespace ergotune
