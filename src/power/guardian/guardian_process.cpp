#include "power/guardian/guardian_process.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.hpp"
#include "base/process/process.hpp"
#include "ergotune/error.hpp"
#include "power/guardian/guardian_report.hpp"

namespace ergotune {
namespace {

constexpr double kPatience = 5;  // s

std::string& guardian_verb() {
  static std::string verb;
  return verb;
}

}  // namespace

// A program that never said it understands the verb must not be started with it: an interpreter would take
// the verb for a script. The ergotune command lies beside the library then (a Python package, an
// application's folder).
std::string guardian_program(std::string& verb) {
  verb = guardian_verb();
  if (!verb.empty()) return "/proc/self/exe";
  verb = "guardian";
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&enable_guardian_verb), &info) == 0 || !info.dli_fname) return {};
  std::error_code code;
  const auto folder = std::filesystem::absolute(info.dli_fname, code).parent_path();
  for (const char* place :
       {"ergotune", "bin/ergotune", "../bin/ergotune", "../../ergotune", "../../../../bin/ergotune"})
    if (const auto program = folder / place;
        ::access(program.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(program, code))
      return program;
  return {};
}

namespace {

void close_descriptors_from(int first) {
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, static_cast<unsigned>(first), ~0u, 0u) == 0) return;
#endif
  for (int descriptor = first; descriptor < 65536; ++descriptor) ::close(descriptor);
}

}  // namespace

void become(const char* program, char* const* arguments, std::span<int> kept) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Out of the way first, so that no dup2 overwrites what another needs.
  for (int& descriptor : kept)
    if ((descriptor = ::fcntl(descriptor, F_DUPFD, 10)) < 0) ::_exit(126);
  int number = 0;
  for (const int descriptor : kept) ::dup2(descriptor, number++);
  close_descriptors_from(number);
  ::execv(program, arguments);
  ::_exit(127);
}

namespace {

// In the child of a fork: async-signal-safe calls only.
[[noreturn]] void become_guardian(const char* program, char* const* arguments, int socket, int lock) {
  ::setsid();
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::sigaction(signal, &ignore, nullptr);
  const int null = ::open("/dev/null", O_RDWR);
  int kept[] = {null, null, null, socket, lock};
  become(program, arguments, kept);
}

// Reads what is there until `enough` says so, the other end closes, or time is up.
template <class Enough>
std::string read_until(int socket, double timeout, Enough enough) {
  std::string text;
  const double deadline = host_seconds() + timeout;
  while (!enough(text)) {
    const double left = deadline - host_seconds();
    if (left <= 0) break;
    pollfd polled{socket, POLLIN};
    const int milliseconds = static_cast<int>(left * 1000) + 1;
    if (::poll(&polled, 1, milliseconds) < 1) continue;  // a signal, or time is up
    char buffer[4096];
    const ssize_t n = TEMP_FAILURE_RETRY(::read(socket, buffer, sizeof buffer));
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  return text;
}

}  // namespace

void enable_guardian_verb(const std::string& verb) { guardian_verb() = verb; }

void GuardianProcess::start(const Control& control, const StateFolder& folder, const DeviceLock& lock, double timeout,
                            int restore_attempts) {
  abandon();
  std::string verb;
  const std::string program = guardian_program(verb);
  if (program.empty())
    throw UserError(
        "no guardian can be started: the ergotune command was not found beside this library; clocks and "
        "limits are only changed while a guardian watches");
  const auto environment = control.environment();
  std::vector<std::string> words = {"ergotune-guardian",
                                    verb,
                                    "--session",
                                    std::to_string(::getpid()),
                                    "--session-ticks",
                                    std::to_string(process_start_ticks(::getpid())),
                                    "--control",
                                    control.reopen_id(),
                                    "--key",
                                    control.device_key(),
                                    "--state",
                                    folder.path().string(),
                                    "--sysfs-root",
                                    environment.sysfs_root.string(),
                                    "--attempts",
                                    std::to_string(restore_attempts)};
  if (!environment.nvml_library.empty()) words.insert(words.end(), {"--nvml", environment.nvml_library});
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(std::string("cannot make a socket pair: ") + std::strerror(errno));
  const pid_t child = ::fork();
  if (child < 0) {
    const int code = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw UserError(std::string("no guardian can be started: ") + std::strerror(code));
  }
  if (child == 0) become_guardian(program.c_str(), arguments.data(), ends[1], lock.descriptor());
  ::close(ends[1]);
  pid_ = child;
  socket_ = ends[0];
  const auto answer = read_until(socket_, timeout, [](const std::string& text) { return text.ends_with('\n'); });
  if (answer == kGuardianReady) return;
  ::kill(pid_, SIGKILL);  // it has nothing to restore yet, or its journal is still ours to carry out
  abandon();
  throw UserError(fmt::format("no guardian can be started{}{}; clocks and limits stay as they are",
                              answer.empty() ? "" : ": ", answer));
}

bool GuardianProcess::alive() const {
  if (socket_ < 0) return false;
  pollfd polled{socket_, POLLIN};
  return ::poll(&polled, 1, 0) == 0;  // it says nothing by itself: readable means closed
}

bool GuardianProcess::finish(RestoreReport& report, double timeout) {
  if (socket_ < 0) return false;
  if (TEMP_FAILURE_RETRY(::send(socket_, "F", 1, MSG_NOSIGNAL)) != 1) return false;
  const auto text = read_until(socket_, timeout, [](const std::string&) { return false; });
  if (!parse_report(text, report)) return false;
  abandon();
  return true;
}

void GuardianProcess::abandon() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  if (pid_ <= 0) return;
  // It ends as soon as it has restored; should it hang, it must not take us with it, and init reaps it later.
  reap(pid_, kPatience);
  pid_ = -1;
}

}  // namespace ergotune
