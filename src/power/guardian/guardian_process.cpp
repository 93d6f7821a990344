#include "power/guardian/guardian_process.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/process/process.hpp"
#include "ergotune/error.hpp"

namespace ergotune {
namespace {

constexpr double kPatience = 5;  // s

std::string& guardian_verb() {
  static std::string verb;
  return verb;
}

}  // namespace

// A program that has not declared that it implements the verb must not be started with it: an interpreter would take
// the verb for a script. Then the ergotune command that is installed with the library (Python package, folder of an
// application) is used.
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
  // Moved first, so that no dup2 overwrites a descriptor that is still needed.
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

  const SocketPair sockets = make_socket_pair();
  const pid_t child = ::fork();
  if (child < 0) {
    const int code = errno;
    ::close(sockets.ours);
    ::close(sockets.theirs);
    throw UserError(std::string("no guardian can be started: ") + std::strerror(code));
  }
  if (child == 0) become_guardian(program.c_str(), arguments.data(), sockets.theirs, lock.descriptor());
  ::close(sockets.theirs);
  pid_ = child;
  stream_.emplace(guardian::kKind, sockets.ours, sockets.ours);
  std::string why;
  try {
    const auto answer = stream_->receive(timeout);
    if (answer && std::holds_alternative<guardian::Ready>(*answer)) return;
    if (answer) why = ": " + std::get<guardian::Refused>(*answer).message;
  } catch (const std::exception&) {
    // it has ended, or is not a guardian
  }
  ::kill(pid_, SIGKILL);  // it has nothing to restore yet, or this process can still restore the journal
  abandon();
  throw UserError(fmt::format("no guardian can be started{}; clocks and limits stay as they are", why));
}

bool GuardianProcess::alive() const {
  if (!stream_) return false;
  pollfd polled{stream_->in(), POLLIN};
  return ::poll(&polled, 1, 0) == 0;  // it sends nothing on its own, so readable means closed
}

bool GuardianProcess::finish(RestoreReport& report, double timeout) {
  if (!stream_) return false;
  try {
    stream_->send(guardian::Finish{});
    const auto answer = stream_->receive(timeout);
    if (!answer || !std::holds_alternative<RestoreReport>(*answer)) return false;
    report = std::get<RestoreReport>(*answer);
  } catch (const Error&) {
    return false;  // it has died
  }
  abandon();
  return true;
}

void GuardianProcess::abandon() {
  stream_.reset();
  if (pid_ <= 0) return;
  // It ends after restoring. If it blocks, this process does not wait; init reaps it later.
  reap(pid_, kPatience);
  pid_ = -1;
}

}  // namespace ergotune
