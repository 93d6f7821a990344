#include "power/guardian/guardian_process.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/process/process.hpp"
#include "ergotune/error.hpp"
#include "power/controls/control_backends.hpp"

namespace ergotune {

static auto fields(RestoreStep& step) {
  auto& [kind, target, value, quantity] = step;
  return std::tie(kind, target, value, quantity);
}
static auto fields(ControlResult& result) {
  auto& [status, message] = result;
  return std::tie(status, message);
}
static auto fields(RestoreOutcome& outcome) {
  auto& [step, result, description] = outcome;
  return std::tie(step, result, description);
}
static auto fields(RestoreReport& report) {
  auto& [device, outcomes, complete, summary] = report;
  return std::tie(device, outcomes, complete, summary);
}

namespace guardian {

static auto fields(Ready&) { return std::tie(); }
static auto fields(Refused& refused) { return std::tie(refused.message); }
static auto fields(Finish&) { return std::tie(); }
static auto fields(At& at) { return std::tie(at.step); }

std::string encode(const Message& message) { return encode_message(kKind, message); }

Message decode(const Frame& frame, std::type_identity<Message>) { return decode_message<Message>(kKind, frame); }

void answer(Stream& stream, const Message& message) {
  try {
    stream.send(message);
  } catch (const Disconnected&) {
  }
}

}  // namespace guardian

namespace {

constexpr double kGuardianPatience = 5;  // s

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
        "no guardian can be started: the ergotune command was not found beside this library; clocks and limits are "
        "only changed while a guardian watches");
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
  reap(pid_, kGuardianPatience);
  pid_ = -1;
}

namespace {

constexpr int kPipe = 3;
constexpr double kRestorerPatience = 0.2;  // s

// In the child of a fork: async-signal-safe calls only.
[[noreturn]] void become_restorer(const char* program, char* const* arguments, int pipe, pid_t parent) {
  // Another process carries out the complete journal if the parent ends, so this one must not continue.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);
  const int null = ::open("/dev/null", O_RDWR);
  int kept[] = {null, null, null, pipe};
  become(program, arguments, kept);
}

/// A process that restores a journal.
class Restorer {
 public:
  Restorer(const std::string& program, const std::vector<std::string>& words) {
    std::vector<char*> arguments;
    for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) become_restorer(program.c_str(), arguments.data(), ends[1], parent);
    ::close(ends[1]);
    stream_.emplace(guardian::kKind, ends[0], -1);
    if (child > 0) pid_ = child;
  }
  Restorer(const Restorer&) = delete;
  Restorer& operator=(const Restorer&) = delete;
  ~Restorer() {
    if (!pid_) return;
    ::kill(*pid_, SIGKILL);
    reap(*pid_, kRestorerPatience);  // does not wait for a process that is blocked inside the kernel
  }

  /// Returns the report; nullopt if the process ended, or sent nothing for `patience` s: at() and why() then tell where
  /// and why.
  std::optional<RestoreReport> wait(double patience) {
    if (!pid_) return std::nullopt;  // no process could be started
    try {
      while (const auto message = stream_->receive(patience)) {
        if (const auto* report = std::get_if<RestoreReport>(&*message)) return *report;
        if (const auto* at = std::get_if<guardian::At>(&*message)) at_ = at->step;
      }
      hung_ = true;
      why_ = fmt::format("the driver's call did not return within {:g} s", patience);
      return std::nullopt;
    } catch (const Disconnected&) {
    } catch (const FormatError&) {
      ::kill(*pid_, SIGKILL);
    }
    int status{};
    (void)!TEMP_FAILURE_RETRY(::waitpid(*pid_, &status, 0));
    pid_.reset();
    why_ = WIFSIGNALED(status) ? fmt::format("the driver's call ended the process ({})", ::strsignal(WTERMSIG(status)))
                               : fmt::format("the process ended with code {}", WEXITSTATUS(status));
    return std::nullopt;
  }
  /// The step that was in progress; nullopt before the first one.
  const std::optional<std::size_t>& at() const { return at_; }
  const std::string& why() const { return why_; }
  bool hung() const { return hung_; }

 private:
  std::optional<pid_t> pid_;
  std::optional<guardian::Stream> stream_;
  std::optional<std::size_t> at_;
  std::string why_;
  bool hung_ = false;
};

std::vector<std::string> command_line_for(const std::string& verb, const std::filesystem::path& file,
                                          const ControlEnvironment& environment, const RestoreOptions& round) {
  std::vector<std::string> words = {"ergotune-guardian",
                                    verb,
                                    kRestoreArgument,
                                    file.string(),
                                    environment.state_folder.string(),
                                    environment.sysfs_root.string(),
                                    environment.nvml_library,
                                    round.replay_after_restart ? "1" : "0",
                                    std::to_string(round.attempts)};
  for (const auto& [position, why] : round.left_out) {
    words.push_back(std::to_string(position));
    words.push_back(why);
  }
  return words;
}

}  // namespace

RestoreReport restore_in_process(const StateFolder& folder, const std::filesystem::path& file,
                                 const ControlEnvironment& environment, const RestoreOptions& requested) {
  RestoreOptions round = requested;
  round.control = nullptr;
  std::size_t steps{};
  try {
    const auto journal = folder.read(file);
    if (!journal) return {};
    steps = journal->steps.size();
  } catch (const std::exception& error) {
    return {"", {}, false, error.what()};
  }
  std::string verb;
  const std::string program = guardian_program(verb);
  ControlEnvironment there = environment;
  there.state_folder = folder.path();
  double patience = round.patience;
  while (!program.empty() && round.left_out.size() < steps) {
    Restorer restorer(program, command_line_for(verb, file, there, round));
    if (auto report = restorer.wait(patience)) return std::move(*report);
    if (!restorer.at()) break;  // a program that does not implement the restoring process
    if (*restorer.at() < steps) {
      round.left_out[*restorer.at()] = restorer.why();
    } else {
      for (std::size_t i = 0; i < steps; ++i)
        round.left_out.try_emplace(i, "the device does not open: " + restorer.why());
    }
    if (restorer.hung()) {
      patience = round.patience / 4;  // less patience with a driver that has blocked once
      round.attempts = 1;
    }
  }
  return restore_journal(folder, file, environment, round);
}

int run_restorer(const std::vector<std::string>& arguments) {
  if (arguments.size() < 6) return 2;
  guardian::Stream parent(guardian::kKind, -1, kPipe);
  ControlEnvironment environment;
  environment.state_folder = arguments[1];
  environment.sysfs_root = arguments[2];
  environment.nvml_library = arguments[3];
  RestoreOptions round;
  round.replay_after_restart = arguments[4] == "1";
  round.attempts = std::atoi(arguments[5].c_str());
  for (std::size_t i = 6; i + 1 < arguments.size(); i += 2)
    round.left_out[std::strtoull(arguments[i].c_str(), nullptr, 10)] = arguments[i + 1];
  round.before_step = [&](std::size_t position) { guardian::answer(parent, guardian::At{position}); };
  try {
    const auto folder = StateFolder::open(environment.state_folder);
    guardian::answer(parent, restore_journal(folder, arguments[0], environment, round));
    return 0;
  } catch (const std::exception&) {
    return 2;
  }
}

}  // namespace ergotune
