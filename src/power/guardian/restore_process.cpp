#include "power/guardian/restore_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/process/process.hpp"
#include "power/guardian/guardian_process.hpp"

namespace ergotune {
namespace {

constexpr int kPipe = 3;
constexpr double kPatience = 0.2;  // s

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
    reap(*pid_, kPatience);  // does not wait for a process that is blocked inside the kernel
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
