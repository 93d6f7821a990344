// Workers that are children of this process, connected by a socket pair.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "base/live_file.hpp"
#include "base/process/process.hpp"
#include "evaluate/live/worker_transport.hpp"

namespace ergotune {
namespace {

ChildProcess start_worker(std::vector<std::string> command, int socket, int log) {
  command.insert(command.end(), {"--descriptor", "3"});
  if (log >= 0) {
    command.insert(command.end(), {"--log", std::to_string(log)});
    // The log is inherited under its number. Only this child may have it, so that it stays open across exec only now.
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
  ChildTransport(const std::vector<std::string>& command, SocketPair sockets)
      : WorkerTransport(protocol::kKind, sockets.ours),
        process_(start_worker(command, sockets.theirs, log_.descriptor())) {}
  ~ChildTransport() override { kill(); }
  void begin_request() override { log_.begin(); }
  ProcessEnding end() override {
    kill();
    return log_.ending(process_.wait().value_or(0));
  }
  int process() const override { return std::max(0, process_.pid()); }

 private:
  // Kills all descendants as well: a compiler started by a worker has its own process group.
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

StartWorker start_children(std::vector<std::string> command) {
  return [command = std::move(command)](const protocol::Setup& setup) {
    auto transport = std::make_unique<ChildTransport>(command, make_socket_pair());
    try {
      transport->stream().send(setup);
    } catch (const Disconnected&) {
      // it has ended already: reading its answer will show that
    }
    return transport;
  };
}

}  // namespace ergotune
