#include "cli/run_here.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
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

}  // namespace ergotune::cli
