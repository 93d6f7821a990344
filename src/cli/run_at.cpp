#include "cli/run_at.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "ergotune/error.hpp"
#include "power/guardian/guardian.hpp"
#include "problem/program.hpp"

namespace ergotune::cli {
namespace {

/// The child has the terminal, and what is pressed there; who asked waits for it.
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
    // Killed: the guardian puts the clocks back, and the program must not go on at others than it was promised.
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

}  // namespace

int run_at(std::unique_ptr<Control> control, ControlQuantity quantity, double value,
           const std::vector<std::string>& command, bool take_over) {
  if (find_program(command.front(), std::filesystem::current_path()).empty())
    throw UserError(fmt::format("the program \"{}\" is not there", command.front()));
  const ControlResult checked = check_value(quantity, control->range(quantity), value);
  if (!checked.ok()) throw UserError("--at: " + checked.message);
  ControlSessionOptions options;
  options.take_over = take_over;
  const auto session = ControlSession::open(std::move(control), options);
  for (const std::string& note : session->notes()) fmt::print(stderr, "note: {}\n", note);
  if (const ControlResult set = session->set(quantity, value); !set.ok()) throw UserError("--at: " + set.message);
  // Whoever ends us with a signal wants the program ended and things put back, which the guardian does as well.
  const int code = run_here(command);
  session->finish();
  return code;
}

}  // namespace ergotune::cli
