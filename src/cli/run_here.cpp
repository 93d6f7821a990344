#include "cli/run_here.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "ergotune/error.hpp"
#include "problem/program.hpp"

namespace ergotune::cli {

void require_program(const std::vector<std::string>& command) {
  if (find_program(command.front(), std::filesystem::current_path()).empty())
    throw UserError(fmt::format("the program \"{}\" does not exist", command.front()));
}

std::string program_name(const std::vector<std::string>& command) {
  return std::filesystem::path(command.front()).filename().string();
}

int run_here(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const auto interrupt = std::signal(SIGINT, SIG_IGN), quit = std::signal(SIGQUIT, SIG_IGN);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) throw Error(fmt::format("no process can be started: {}", std::strerror(errno)));
  if (pid == 0) {
    std::signal(SIGINT, interrupt);
    std::signal(SIGQUIT, quit);
    // If this process is killed, the guardian restores the clocks, and the program must not continue at other clocks.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
    ::execvp(argv[0], argv.data());
    fmt::print(stderr, "ergotune: {}: {}\n", argv[0], std::strerror(errno));
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

namespace {

/// s that a verb has for a clean end after the first signal. The process then ends even if it waits for something (a
/// full pipe, a driver that hangs): the guardian restores clocks, and the store contains all rows.
constexpr unsigned kCleanEnd = 30;

/// ms in which a further signal is the same request: `timeout` sends its signal to the process and to its group.
constexpr std::int64_t kSameRequest = 1000;

std::atomic<bool> interrupted{false};
std::atomic<int> noted{0};
std::atomic<std::int64_t> noted_at{0};  ///< ms of the monotonic clock; 0: not yet

extern "C" void note_interrupt(int signal) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t at = 1000 * now.tv_sec + now.tv_nsec / 1'000'000;
  std::int64_t before = 0;
  if (noted_at.compare_exchange_strong(before, at)) {
    interrupted.store(true);
    noted.store(signal);
    ::alarm(kCleanEnd);
  } else if (at - before > kSameRequest) {
    std::signal(signal, SIG_DFL);
    ::raise(signal);
  }
}

extern "C" void end_process(int) {
  static constexpr char kText[] = "ergotune: did not end within 30 s of the signal; ended without an answer\n";
  pollfd stream{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&stream, 1, 0) == 1 && (stream.revents & POLLOUT) != 0)
    (void)!::write(STDERR_FILENO, kText, sizeof kText - 1);
  ::_exit(128 + noted.load());
}

}  // namespace

const std::atomic<bool>* interruption() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // nohup ignores the signal for this process: keep that.
    if (std::signal(signal, note_interrupt) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
  std::signal(SIGALRM, end_process);
  return &interrupted;
}

}  // namespace ergotune::cli
