#include "cli/interruption.hpp"

#include <poll.h>
#include <unistd.h>

#include <csignal>

namespace ergotune::cli {
namespace {

/// s that a verb has to end cleanly after the first signal; then the process ends all the same, whatever it waits for
/// (a pipe that is not read, a driver that hangs). The guardian puts clocks back and the store has every row.
constexpr unsigned kCleanEnd = 30;

std::atomic<bool> interrupted{false};
std::atomic<int> noted{0};

extern "C" void note_interrupt(int signal) {
  interrupted.store(true);
  noted.store(signal);
  // The second Ctrl-C is for those who will not wait.
  std::signal(signal, SIG_DFL);
  ::alarm(kCleanEnd);
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
    // Who started us with nohup wants it ignored.
    if (std::signal(signal, note_interrupt) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
  std::signal(SIGALRM, end_process);
  return &interrupted;
}

}  // namespace ergotune::cli
