// ControlSession: takes the lock, writes the journal, starts the guardian, and only then makes changes.
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "ergotune/error.hpp"
#include "power/controls/control_backends.hpp"
#include "power/guardian/guardian.hpp"
#include "power/guardian/guardian_process.hpp"
#include "power/guardian/journal.hpp"

namespace ergotune {
namespace {

std::string own_command_line() {
  std::string text = read_file("/proc/self/cmdline").value_or("");
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  constexpr std::size_t kLongest = 200;
  return text.size() > kLongest ? text.substr(0, kLongest) + "..." : text;
}

DeviceLock take_lock(const StateFolder& folder, const Control& control, double wait_for_guardian) {
  const double begin = host_seconds();
  DeviceHolder holder;
  while (true) {
    if (auto lock = DeviceLock::try_take(folder, control.device_key(), &holder)) return std::move(*lock);
    const double waited = host_seconds() - begin;
    if (holder.alive || (holder.pid == 0 && waited > 1) || waited > wait_for_guardian) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const auto who = holder.pid == 0 ? std::string("another session, whose process is unknown")
                                   : fmt::format("the session with pid {} (\"{}\", since {})", holder.pid,
                                                 holder.command, iso_time(holder.since));
  if (holder.pid == 0 || holder.alive)
    throw UserError(fmt::format(
        "{} is in use by {}; two sessions on one device would spoil each other's clocks: wait for it or end it",
        control.id(), who));
  throw UserError(
      fmt::format("{}: the guardian of {}, which has ended, is still putting its settings back; try again later, and "
                  "see guardian.log in {}",
                  control.id(), who, folder.path().string()));
}

}  // namespace

struct ControlSession::State {
  std::unique_ptr<Control> control;
  ControlSessionOptions options;
  std::optional<StateFolder> folder;
  std::optional<DeviceLock> lock;
  Journal journal;                    // its steps are those of the quantities changed so far
  std::vector<RestoreStep> snapshot;  // of all settings, read before the first change
  std::set<ControlQuantity> touched, confirmed;
  GuardianProcess guardian;
  ControlSetting current;
  std::vector<std::string> notes;
  bool ended = false;
  std::string ended_because;

  // The watcher notices when the guardian dies, and replaces it at once: without a guardian, no setting may remain
  // changed.
  std::mutex mutex;
  std::thread watcher;
  int wake = -1;

  ~State() {
    stop_watcher();
    ::close(wake);
  }

  void stop_watcher() {
    if (!watcher.joinable()) return;
    const std::uint64_t one = 1;
    (void)!::write(wake, &one, sizeof one);
    watcher.join();
  }

  void watch() {
    while (true) {
      int guardian_end;
      {
        std::lock_guard hold(mutex);
        if (ended) return;
        guardian_end = guardian.descriptor();
      }
      pollfd polled[] = {{wake, POLLIN}, {guardian_end, POLLIN}};
      ::poll(polled, std::size(polled), -1);
      if (polled[0].revents) return;
      if (!polled[1].revents) continue;  // a signal
      std::lock_guard hold(mutex);
      if (!ended) ensure_guardian();
    }
  }

  // Call with the mutex held. Ensures that a guardian is running: starts another one if necessary, or else restores all
  // settings and ends the session.
  bool ensure_guardian() {
    if (guardian.alive()) return true;
    const pid_t before = guardian.pid();
    try {
      guardian.start(*control, *folder, *lock, options.guardian_timeout, options.restore_attempts);
      notes.push_back(fmt::format("the guardian (pid {}) was ended by another process; another took its place (pid {})",
                                  before, guardian.pid()));
      return true;
    } catch (const std::exception& error) {
      ended = true;
      const auto report = restore();
      ended_because = fmt::format("the guardian was ended by another process and no other could be started ({}); {}",
                                  error.what(), report.complete ? "everything was restored" : report.summary);
      notes.push_back(ended_because);
      current.clear();
      if (!report.complete) note_failed_restore(report);
      return false;
    }
  }

  // Restores as the guardian would.
  RestoreReport restore() {
    RestoreOptions round;
    round.attempts = options.restore_attempts;
    return restore_in_process(*folder, folder->journal_file(journal.device_key), control->environment(), round);
  }

  // Writes the steps of `quantity` to the journal on disk; to be called before a change.
  void touch(ControlQuantity quantity) {
    if (touched.contains(quantity)) return;
    auto next = touched;
    next.insert(quantity);
    journal.steps.clear();
    for (const auto& step : snapshot)
      if (!step.quantity || next.contains(*step.quantity)) journal.steps.push_back(step);
    folder->write(journal);
    touched = std::move(next);
  }

  void confirm(ControlQuantity quantity) {
    if (!confirmed.insert(quantity).second) return;
    bool changed = false;
    for (auto& step : snapshot) {
      const auto value = step.value;
      if (step.quantity == quantity) control->confirm(step);
      changed = changed || step.value != value;
    }
    if (!changed) return;
    touched.erase(quantity);
    try {
      touch(quantity);
    } catch (const std::exception&) {
      // The previous journal exists, and restores correctly in nearly all cases.
      touched.insert(quantity);
    }
  }

  void replay_left_over() {
    const auto file = folder->journal_file(control->device_key());
    if (!std::filesystem::exists(file)) return;
    std::string damage;
    try {
      folder->read(file);
    } catch (const std::exception& error) {
      damage = error.what();
      folder->set_aside(file);
    }
    RestoreReport report;
    if (damage.empty()) {
      RestoreOptions round;
      round.replay_after_restart = false;
      round.attempts = options.restore_attempts;
      report = restore_in_process(*folder, file, control->environment(), round);
    } else {
      report.complete = false;
      report.summary = damage + reset_locks(*control) +
                       " (now put aside as *.damaged); check this device's clocks and limits by hand";
    }
    if (!report.complete && !options.take_over)
      throw UserError(
          fmt::format("{}: an earlier session left settings behind that could not be restored: {}; use --take-over to "
                      "go on with the present settings",
                      control->id(), report.summary));
    if (!report.summary.empty()) notes.push_back(report.summary);
  }
};

ControlSession::ControlSession(std::unique_ptr<State> state) : state_(std::move(state)) {}

std::unique_ptr<ControlSession> ControlSession::open(std::unique_ptr<Control> control,
                                                     const ControlSessionOptions& options) {
  require_controls_allowed();
  auto state = std::make_unique<State>();
  state->control = std::move(control);
  state->options = options;
  if (state->options.command.empty()) state->options.command = own_command_line();
  auto& device = *state->control;

  if (device.has_remote_guardian()) {
    if (auto result = device.acquire(state->options.command, options.take_over); !result.ok())
      throw UserError(result.message);
    return std::unique_ptr<ControlSession>(new ControlSession(std::move(state)));
  }

  state->folder = StateFolder::open(device.environment().state_folder);
  state->lock = take_lock(*state->folder, device, options.wait_for_guardian);
  const DeviceHolder self{.pid = ::getpid(), .command = state->options.command, .since = wall_seconds()};
  state->lock->name_holder(self);
  state->replay_left_over();
  if (const auto foreign = device.external_lock_sign(); !foreign.empty()) {
    if (!options.take_over)
      throw UserError(
          fmt::format("{}: {}; it could not be restored afterwards. Use --take-over to go on and leave the device with "
                      "its defaults",
                      device.id(), foreign));
    state->notes.push_back(fmt::format("{}: taken over: {}", device.id(), foreign));
  }
  state->snapshot = device.snapshot();
  if (state->snapshot.empty())
    throw UserError(
        fmt::format("{}: what would have to be restored cannot be read, so nothing is changed", device.id()));
  state->journal = {device.id(),  device.reopen_id(), device.device_key(),
                    boot_id(),    self.pid,           process_start_ticks(self.pid),
                    self.command, self.since,         {}};
  state->guardian.start(device, *state->folder, *state->lock, options.guardian_timeout, options.restore_attempts);
  state->wake = ::eventfd(0, EFD_CLOEXEC);
  if (state->wake < 0) throw Error("cannot make an event descriptor");
  state->watcher = std::thread([watched = state.get()] { watched->watch(); });
  return std::unique_ptr<ControlSession>(new ControlSession(std::move(state)));
}

ControlSession::~ControlSession() {
  try {
    finish();
  } catch (const std::exception&) {
    // The guardian notices the closed socket and restores.
  }
}

Control& ControlSession::control() { return *state_->control; }
const ControlSetting& ControlSession::current() const { return state_->current; }

pid_t ControlSession::guardian_pid() const {
  std::lock_guard hold(state_->mutex);
  return std::max<pid_t>(state_->guardian.pid(), 0);
}

bool ControlSession::taking_over() const { return state_->options.take_over; }

std::vector<std::string> ControlSession::notes() const {
  std::lock_guard hold(state_->mutex);
  return state_->notes;
}

ControlResult ControlSession::set(ControlQuantity quantity, double value) {
  std::lock_guard hold(state_->mutex);
  auto& state = *state_;
  if (state.ended)
    return {ControlStatus::failed,
            error_description(quantity, value,
                              state.ended_because.empty() ? "the control session has ended" : state.ended_because)};
  if (const auto now = state.current.find(quantity); now != state.current.end() && now->second == value) return {};
  if (!state.control->has_remote_guardian()) {
    if (!state.ensure_guardian())
      return {ControlStatus::failed, error_description(quantity, value, state.ended_because)};
    try {
      state.touch(quantity);
    } catch (const std::exception& error) {
      return {ControlStatus::failed,
              error_description(quantity, value,
                                fmt::format("not set, because the journal cannot be written: {}", error.what()))};
    }
  }
  ControlResult result;
  try {
    result = state.control->set(quantity, value);
    // A driver may report success without changing the setting.
    if (result.ok()) {
      if (result = state.control->check(quantity, value); !result.ok())
        result.message = "the driver took it without complaint, but it is not in force: " + result.message;
    }
  } catch (const std::exception& error) {
    result = {ControlStatus::failed, error_description(quantity, value, error.what())};
  }
  if (result.ok()) {
    state.current[quantity] = value;
    if (!state.control->has_remote_guardian()) state.confirm(quantity);
  } else {
    state.current.erase(quantity);  // may have been partly changed
  }
  return result;
}

ControlResult ControlSession::check() {
  std::lock_guard hold(state_->mutex);
  for (const auto& [quantity, value] : state_->current) {
    try {
      if (auto result = state_->control->check(quantity, value); !result.ok()) return result;
    } catch (const std::exception& error) {
      return {ControlStatus::failed, error_description(quantity, value, error.what())};
    }
  }
  return {};
}

void ControlSession::doubt() {
  std::lock_guard hold(state_->mutex);
  state_->current.clear();
}

ControlResult ControlSession::apply(const ControlSetting& setting) {
  const auto memory = setting.find(ControlQuantity::memory_clock_mhz);
  const auto core = setting.find(ControlQuantity::core_clock_mhz);
  // All values are checked before any is changed: a rejected setting leaves the previous one in force.
  {
    std::lock_guard hold(state_->mutex);
    auto& control = *state_->control;
    for (const auto& [quantity, value] : setting)
      if (auto checked = check_value(quantity, control.range(quantity), value); !checked.ok()) return checked;
    if (memory != setting.end() && core != setting.end()) {
      const auto clocks = control.core_clocks_at(memory->second);
      ControlRange allowed;
      allowed.supported = true;
      allowed.values = clocks;
      if (!clocks.empty() && !check_value(ControlQuantity::core_clock_mhz, allowed, core->second).ok())
        return {ControlStatus::invalid_value,
                fmt::format("core clock {:g} MHz does not go with memory clock {:g} MHz: there it is {:g} to {:g} MHz",
                            core->second, memory->second, clocks.front(), clocks.back())};
    }
  }
  for (const auto quantity :
       {ControlQuantity::memory_clock_mhz, ControlQuantity::core_clock_mhz, ControlQuantity::power_limit_w})
    if (const auto value = setting.find(quantity); value != setting.end())
      if (auto result = set(quantity, value->second); !result.ok()) return result;
  return {};
}

RestoreReport ControlSession::finish() {
  auto& state = *state_;
  state.stop_watcher();
  std::lock_guard hold(state.mutex);
  RestoreReport report;
  report.device = state.control->id();
  if (state.ended) return report;
  state.ended = true;
  state.current.clear();
  if (state.control->has_remote_guardian()) {
    if (auto result = state.control->release(); !result.ok()) {
      report.complete = false;
      report.summary = fmt::format("{}: {}", report.device, result.message);
      note_failed_restore(report);
    }
    return report;
  }
  constexpr double kRestoreTime =
      60;  // s: the guardian tries for 3 s, 20 s if the driver blocks, 28 s if the device is lost
  if (!state.guardian.finish(report, kRestoreTime)) {
    if (state.guardian.alive()) {
      // The guardian has journal and lock, and continues; two processes must not restore the same device.
      report.complete = false;
      report.summary = fmt::format(
          "{}: the guardian (pid {}) has not restored everything within {:g} s and continues to try; \"ergotune clocks "
          "status\" and guardian.log in {} give details",
          state.control->id(), state.guardian.pid(), kRestoreTime, state.folder->path().string());
    } else {
      report = state.restore();
    }
  }
  report.device = state.control->id();
  state.guardian.abandon();
  state.lock.reset();
  if (!report.complete) note_failed_restore(report);
  return report;
}

}  // namespace ergotune
