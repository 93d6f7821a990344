#include "evaluate/worker_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "ergotune/base/error.hpp"

namespace ergotune {
namespace {

constexpr std::size_t kLastWords = 2000;

void collect_descendants(pid_t pid, std::vector<pid_t>& found) {
  std::ifstream children(fmt::format("/proc/{}/task/{}/children", pid, pid));
  for (pid_t child = 0; children >> child;) {
    found.push_back(child);
    collect_descendants(child, found);
  }
}

ChildProcess start_worker(std::vector<std::string> command, int socket, int log) {
  command.insert(command.end(), {"--descriptor", "3"});
  if (log >= 0) {
    command.insert(command.end(), {"--log", std::to_string(log)});
    // The log is inherited under its own number: only this child may have it, so it is open across exec just
    // now.
    ::fcntl(log, F_SETFD, 0);
  }
  try {
    ChildProcess process = ChildProcess::start(command, {}, socket);
    if (log >= 0) ::fcntl(log, F_SETFD, FD_CLOEXEC);
    ::close(socket);
    return process;
  } catch (...) {
    ::close(socket);
    throw;
  }
}

}  // namespace

// Its number is above those that a child's standard streams and its socket take.
WorkerProcess::Log::Log() {
  const int fresh = ::memfd_create("ergotune-worker-log", MFD_CLOEXEC);
  if (fresh < 0) return;
  descriptor = ::fcntl(fresh, F_DUPFD_CLOEXEC, 10);
  ::close(fresh);
}
WorkerProcess::Log::~Log() {
  if (descriptor >= 0) ::close(descriptor);
}

WorkerProcess::WorkerProcess(const std::vector<std::string>& command, const protocol::Setup& setup)
    : WorkerProcess(command, setup, protocol::make_socket_pair()) {}

WorkerProcess::WorkerProcess(const std::vector<std::string>& command, const protocol::Setup& setup,
                             protocol::SocketPair sockets)
    : channel_(sockets.ours), process_(start_worker(command, sockets.theirs, log_.descriptor)) {
  try {
    channel_.send(setup);
  } catch (const protocol::Disconnected&) {
    // it has died already: whoever waits for its answer will see that
  }
}

WorkerProcess::~WorkerProcess() { kill(); }

void WorkerProcess::kill() {
  if (process_.pid() <= 0) return;
  std::vector<pid_t> descendants;
  collect_descendants(process_.pid(), descendants);
  process_.kill(SIGKILL);
  for (const pid_t pid : descendants) ::kill(pid, SIGKILL);
}

WorkerProcess::Ending WorkerProcess::ending() {
  Ending ending;
  const int status = process_.wait().value_or(0);
  if (WIFSIGNALED(status)) {
    ending.by_signal = true;
    ending.signal = WTERMSIG(status);
    ending.words = fmt::format("signal {} ({})", ending.signal, strsignal(ending.signal));
  } else {
    ending.exit_code = WEXITSTATUS(status);
    ending.words = fmt::format("exit code {}", ending.exit_code);
  }
  const off_t size = log_.descriptor >= 0 ? ::lseek(log_.descriptor, 0, SEEK_END) : 0;
  if (size > 0) {
    const off_t from = std::max<off_t>(0, size - static_cast<off_t>(kLastWords));
    std::string text(static_cast<std::size_t>(size - from), '\0');
    const ssize_t n = ::pread(log_.descriptor, text.data(), text.size(), from);
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    ending.last_words = text;
  }
  return ending;
}

}  // namespace ergotune
