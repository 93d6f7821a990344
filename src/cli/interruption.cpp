#include "cli/interruption.hpp"

#include <poll.h>
#include <unistd.h>

#include <csignal>

namespace ergotune::cli {
namespace {

/// s that a verb has for a clean end after the first signal. The process then ends even if it waits for something (a
/// full pipe, a driver that hangs): the guardian restores clocks, and the store contains all rows.
constexpr unsigned kCleanEnd = 30;

std::atomic<bool> interrupted{false};
std::atomic<int> noted{0};

extern "C" void note_interrupt(int signal) {
  interrupted.store(true);
  noted.store(signal);
  // A second Ctrl-C ends the process at once.
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
    // nohup ignores the signal for this process: keep that.
    if (std::signal(signal, note_interrupt) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
  std::signal(SIGALRM, end_process);
  return &interrupted;
}

}  // namespace ergotune::cli
