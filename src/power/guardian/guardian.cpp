// The guardian's side: waits until its session ends in any way, then restores.
#include "power/guardian/guardian.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "power/guardian/guardian_process.hpp"
#include "power/guardian/journal.hpp"

namespace ergotune {
namespace {

std::mutex failed_mutex;
std::vector<RestoreReport> failed_restores;

}  // namespace

void note_failed_restore(const RestoreReport& report) {
  const std::lock_guard hold(failed_mutex);
  failed_restores.push_back(report);
}

std::vector<RestoreReport> take_failed_restores() {
  const std::lock_guard hold(failed_mutex);
  return std::exchange(failed_restores, {});
}

std::string description_of(const RestoreReport& report) {
  std::string text = report.summary;
  for (const auto& outcome : report.outcomes)
    if (!outcome.result.ok())
      text += "\n  " + (outcome.description.empty() ? outcome.result.message : outcome.description);
  return text;
}

namespace {

constexpr int kSocket = 3, kLock = 4;

struct Task {
  pid_t session{};
  std::uint64_t session_ticks{};
  std::string control, key;
  ControlEnvironment environment;
  int attempts{};
};

Task parse_arguments(const std::vector<std::string>& arguments) {
  std::map<std::string, std::string> values;
  for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) values[arguments[i]] = arguments[i + 1];
  for (const char* name :
       {"--session", "--session-ticks", "--control", "--key", "--state", "--sysfs-root", "--attempts"})
    if (!values.contains(name)) throw UserError("the guardian is started by ergotune itself, not by hand");
  Task task;
  task.session = static_cast<pid_t>(std::strtol(values["--session"].c_str(), nullptr, 10));
  task.session_ticks = std::strtoull(values["--session-ticks"].c_str(), nullptr, 10);
  task.attempts = std::atoi(values["--attempts"].c_str());
  task.control = values["--control"];
  task.key = values["--key"];
  task.environment.state_folder = values["--state"];
  task.environment.sysfs_root = values["--sysfs-root"];
  task.environment.nvml_library = values["--nvml"];
  return task;
}

void ignore_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP, SIGTTIN,
                           SIGTTOU, SIGVTALRM, SIGPROF, SIGXCPU, SIGXFSZ})
    ::signal(signal, SIG_IGN);
}

// Returns true if the session asked to finish, false if it ended otherwise.
bool wait_for_session(const Task& task, guardian::Stream& session) {
  // The process is watched in addition to the socket, since a child of the session may hold the socket open.
  int process = -1;
#ifdef SYS_pidfd_open
  process = static_cast<int>(::syscall(SYS_pidfd_open, task.session, 0));
#endif
  while (process_alive(task.session, task.session_ticks)) {
    pollfd polled[] = {{kSocket, POLLIN}, {process, POLLIN}};  // poll() ignores a negative descriptor
    // Linux before 5.3 has no pidfd: check every 100 ms.
    ::poll(polled, std::size(polled), process < 0 ? 100 : -1);
    if (!polled[0].revents) continue;
    const auto message = session.next();
    if (message || session.ended()) return message && std::holds_alternative<guardian::Finish>(*message);
  }
  return false;
}

/// Does the same; a session that sends invalid messages counts as ended.
bool session_finishes(const Task& task, guardian::Stream& session) {
  try {
    return wait_for_session(task, session);
  } catch (const FormatError&) {
    return false;
  }
}

// The socket closes while a dying process is still exiting, and its last write may still be in progress.
void wait_until_gone(const Task& task) {
  const double deadline = host_seconds() + 2;
  while (process_alive(task.session, task.session_ticks) && host_seconds() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

bool device_lost(const RestoreReport& report) {
  return std::ranges::any_of(report.outcomes, [](const RestoreOutcome& outcome) {
    return outcome.result.status == ControlStatus::device_lost;
  });
}

void log(const Task& task, const RestoreReport& report) {
  std::ofstream out(task.environment.state_folder / "guardian.log", std::ios::app);
  out << iso_time(wall_seconds()) << ' ' << report.summary << '\n';
  for (const auto& outcome : report.outcomes)
    if (!outcome.result.ok()) out << "  " << outcome.description << '\n';
}

}  // namespace

int run_guardian(const std::vector<std::string>& arguments) {
  ignore_signals();
  if (!arguments.empty() && arguments.front() == kRestoreArgument)
    return run_restorer({arguments.begin() + 1, arguments.end()});
  std::optional<Task> task;
  std::optional<StateFolder> folder;
  std::unique_ptr<Control> control;
  guardian::Stream session(guardian::kKind, kSocket, kSocket);
  try {
    task = parse_arguments(arguments);
    ::fcntl(kSocket, F_SETFD, FD_CLOEXEC);
    ::fcntl(kLock, F_SETFD, FD_CLOEXEC);
    folder = StateFolder::open(task->environment.state_folder);
    control = open_control(task->control, task->environment);
    if (control->device_key() != task->key)
      throw Error(fmt::format("{} is now another device ({})", task->control, control->device_key()));
  } catch (const std::exception& error) {
    guardian::answer(session, guardian::Refused{error.what()});
    return 2;
  }
  guardian::answer(session, guardian::Ready{});
  const bool requested = session_finishes(*task, session);
  if (!requested) wait_until_gone(*task);
  const auto file = folder->journal_file(task->key);
  // There is no hurry: no process waits, and no other process will restore.
  RestoreOptions round;
  round.attempts = requested ? task->attempts : task->attempts + 3;
  auto report = restore_in_process(*folder, file, task->environment, round);
  // A device that is lost when its session ends may return some seconds later.
  if (requested && device_lost(report)) {
    round.attempts += 3;
    report = restore_in_process(*folder, file, task->environment, round);
  }
  if (requested)
    guardian::answer(session, report);
  else if (!report.summary.empty())
    log(*task, report);
  return report.complete ? 0 : 1;
}

}  // namespace ergotune
