#include "cli/interruption.hpp"

#include <csignal>

namespace ergotune::cli {
namespace {

std::atomic<bool> interrupted{false};

extern "C" void note_interrupt(int signal) {
  interrupted.store(true);
  // The second Ctrl-C is for those who will not wait.
  std::signal(signal, SIG_DFL);
}

}  // namespace

const std::atomic<bool>* interruption() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // Who started us with nohup wants it ignored.
    if (std::signal(signal, note_interrupt) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
  return &interrupted;
}

}  // namespace ergotune::cli
