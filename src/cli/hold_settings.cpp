#include "cli/hold_settings.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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

std::unique_ptr<ControlSession> put_into_force(std::unique_ptr<Control> control, const ControlSetting& setting,
                                               bool take_over) {
  for (const auto& [quantity, value] : setting)
    if (const ControlResult checked = check_value(quantity, control->range(quantity), value); !checked.ok())
      throw UserError(checked.message);
  ControlSessionOptions options;
  options.take_over = take_over;
  auto session = ControlSession::open(std::move(control), options);
  for (const std::string& note : session->notes()) fmt::print(stderr, "note: {}\n", note);
  if (const ControlResult set = session->apply(setting); !set.ok()) throw UserError(set.message);
  return session;
}

}  // namespace

int run_at(std::unique_ptr<Control> control, const ControlSetting& setting, const std::vector<std::string>& command,
           bool take_over) {
  if (find_program(command.front(), std::filesystem::current_path()).empty())
    throw UserError(fmt::format("the program \"{}\" does not exist", command.front()));
  const auto session = put_into_force(std::move(control), setting, take_over);
  // A signal that ends this process ends the program, too, and the guardian restores the settings.
  const int code = run_here(command);
  session->finish();
  return code;
}

void hold_for(std::unique_ptr<Control> control, const ControlSetting& setting, pid_t process, bool take_over) {
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (descriptor < 0)
    throw UserError(fmt::format("--for: process {} cannot be waited for: {}", process, std::strerror(errno)));
  const auto session = put_into_force(std::move(control), setting, take_over);
  pollfd ended{descriptor, POLLIN, 0};
  while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
  ::close(descriptor);
  session->finish();
}

}  // namespace ergotune::cli
