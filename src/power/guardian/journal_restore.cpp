// Restores a journal; used by the guardian, by a session whose guardian has ended, and by `ergotune clocks restore`.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "power/controls/control_backends.hpp"
#include "power/guardian/guardian_process.hpp"
#include "power/guardian/journal.hpp"

namespace ergotune {
namespace {

std::string step_description(const RestoreStep& step) {
  if (step.value.empty()) return step.kind + (step.target.empty() ? "" : " " + step.target);
  return fmt::format("{} {} = \"{}\"", step.kind, step.target, step.value);
}

// Carries out one step. An exception must not prevent the next step.
ControlResult carry_out(Control& control, const RestoreStep& step) {
  try {
    return control.restore(step);
  } catch (const std::exception& error) {
    return {ControlStatus::failed, error.what()};
  }
}

std::unique_ptr<Control> reopen(const Journal& journal, const ControlEnvironment& environment, std::string& reason) {
  try {
    return open_control(journal.reopen_id, environment);
  } catch (const std::exception& error) {
    reason = error.what();
    return nullptr;
  }
}

/// A journal that is being restored.
class Restoring {
 public:
  Restoring(const Journal& journal, const ControlEnvironment& environment, const RestoreOptions& round)
      : journal_(journal),
        environment_(environment),
        round_(round),
        restarted_(journal.boot_id != boot_id()),
        control_(round.control) {
    report.device = journal.device;
    for (const auto& step : journal.steps) report.outcomes.push_back({step, {ControlStatus::failed, "not tried"}, ""});
    for (const auto& [position, why] : round.left_out)
      if (position < report.outcomes.size()) set(position, {ControlStatus::timeout, why});
  }

  bool restarted() const { return restarted_; }

  void run() {
    if (round_.left_out.size() >= report.outcomes.size() && !report.outcomes.empty()) {
      report.complete = false;
      return;
    }
    double pause = 0.05;
    for (int attempt = 0; attempt < round_.attempts; ++attempt, pause *= 2) {
      if (attempt > 0) std::this_thread::sleep_for(std::chrono::duration<double>(pause));
      // A handle may become invalid with the driver, so that each further attempt opens the device again.
      if (attempt > 0 || !control_) {
        tell(RestoreOptions::kOpening);
        opened_ = reopen(journal_, environment_, reason_);
        control_ = opened_.get();
      }
      report.complete = true;
      bool worth_another = false;
      for (std::size_t i = 0; i < report.outcomes.size(); ++i) {
        if (report.outcomes[i].result.ok()) continue;
        if (!round_.left_out.contains(i)) try_step(i);
        if (report.outcomes[i].result.ok()) continue;
        report.complete = false;
        worth_another = worth_another || !round_.left_out.contains(i);
      }
      if (!worth_another) return;
    }
  }

  RestoreReport report;

 private:
  void tell(std::size_t position) const {
    if (round_.before_step) round_.before_step(position);
  }
  void set(std::size_t position, ControlResult result) {
    auto& outcome = report.outcomes[position];
    outcome.result = std::move(result);
    outcome.description = step_description(outcome.step) + (outcome.result.ok() ? "" : ": " + outcome.result.message);
  }
  void try_step(std::size_t position) {
    auto& outcome = report.outcomes[position];
    if (restarted_ && (outcome.step.quantity || !round_.replay_after_restart)) {
      outcome.result = {};
      outcome.description = step_description(outcome.step) + ": the change vanished with the restart of the machine";
      return;
    }
    tell(position);
    set(position, control_ ? carry_out(*control_, outcome.step)
                           : ControlResult{ControlStatus::device_lost, "cannot open the device: " + reason_});
  }

  const Journal& journal_;
  const ControlEnvironment& environment_;
  const RestoreOptions& round_;
  bool restarted_;
  Control* control_;
  std::unique_ptr<Control> opened_;
  std::string reason_;
};

}  // namespace

RestoreReport restore_journal(const StateFolder& folder, const std::filesystem::path& file,
                              const ControlEnvironment& environment, const RestoreOptions& round) {
  std::optional<Journal> journal;
  try {
    journal = folder.read(file);
  } catch (const std::exception& error) {
    return {"", {}, false, error.what()};
  }
  if (!journal) return {};
  Restoring restoring(*journal, environment, round);
  restoring.run();
  RestoreReport& report = restoring.report;
  const auto who =
      fmt::format("session pid {} (\"{}\", since {})", journal->pid, journal->command, iso_time(journal->since));
  if (!report.complete) {
    report.summary = fmt::format(
        "{}: not everything that {} had changed could be restored; the journal {} is kept: \"ergotune clocks restore\" "
        "tries again",
        journal->device, who, file.string());
    return report;
  }
  try {
    folder.clear(file);
    report.summary = restoring.restarted()
                         ? fmt::format(
                               "{}: the machine was restarted since {}; its clocks and limits went with that{}, the "
                               "journal is cleared",
                               journal->device, who, round.replay_after_restart ? ", files were restored" : "")
                         : fmt::format("{}: what {} had changed is as it was before", journal->device, who);
  } catch (const std::exception& error) {
    report.complete = false;
    report.summary = error.what();
  }
  return report;
}

std::string reset_locks(Control& control) {
  std::string done;
  try {
    for (const RestoreStep& step : control.snapshot()) {
      if (!step.quantity || !step.value.empty()) continue;  // a lock (a step without a value) is only reset
      const ControlResult result = control.restore(step);
      done += fmt::format("; {} of {} {}", step_description(step), control.id(),
                          result.ok() ? "were reset" : "could not be reset: " + result.message);
    }
  } catch (const std::exception& error) {
    done += fmt::format("; the clock locks of {} could not be reset: {}", control.id(), error.what());
  }
  return done;
}

namespace {

/// Returns the control of the device to which the journal's file name belongs; nullptr if it is not present.
std::unique_ptr<Control> control_of_journal(const StateFolder& folder, const std::filesystem::path& file,
                                            const ControlEnvironment& environment) {
  for (const std::string& id : list_controls(environment)) {
    try {
      auto control = open_control(id, environment);
      if (folder.journal_file(control->device_key()) == file) return control;
    } catch (const std::exception&) {
      // A device that cannot be opened is skipped.
    }
  }
  return nullptr;
}

}  // namespace

std::vector<RestoreReport> replay_stale_journals(const ControlEnvironment& environment, bool replay_after_restart) {
  std::vector<RestoreReport> reports;
  std::error_code code;
  if (controls_forbidden() || !std::filesystem::exists(environment.state_folder, code)) return reports;
  std::optional<StateFolder> folder;
  try {
    folder = StateFolder::open(environment.state_folder);
  } catch (const std::exception& error) {
    reports.push_back({"", {}, false, error.what()});
    return reports;
  }
  for (const auto& file : folder->journal_files()) {
    try {
      std::string key;
      try {
        const auto journal = folder->read(file);
        if (!journal) continue;
        key = journal->device_key;
      } catch (const Error& error) {
        const auto control = control_of_journal(*folder, file, environment);
        const auto lock = control ? DeviceLock::try_take(*folder, control->device_key()) : std::nullopt;
        if (control && !lock) continue;  // its session or guardian is running
        folder->set_aside(file);
        reports.push_back(
            {control ? control->id() : "",
             {},
             false,
             fmt::format("{}{}; it was put aside as *.damaged: check the clocks and limits of this machine by hand",
                         error.what(), control ? reset_locks(*control) : "")});
        continue;
      }
      const auto lock = DeviceLock::try_take(*folder, key);
      if (!lock) continue;  // its session or guardian is running and will restore
      RestoreOptions round;
      round.replay_after_restart = replay_after_restart;
      auto report = restore_in_process(*folder, file, environment, round);
      if (!report.summary.empty()) reports.push_back(std::move(report));
    } catch (const std::exception& error) {
      reports.push_back({"", {}, false, error.what()});
    }
  }
  return reports;
}

std::vector<JournalStatus> list_journals(const ControlEnvironment& environment) {
  std::vector<JournalStatus> journals;
  std::error_code code;
  if (!std::filesystem::exists(environment.state_folder, code)) return journals;
  try {
    const auto folder = StateFolder::open(environment.state_folder);
    const auto boot = boot_id();
    for (const auto& file : folder.journal_files()) {
      JournalStatus status;
      status.file = file;
      try {
        const auto journal = folder.read(file);
        if (!journal) continue;
        status.device = journal->device;
        status.device_key = journal->device_key;
        status.session = {journal->pid, journal->command, journal->since,
                          process_alive(journal->pid, journal->start_ticks)};
        status.steps = journal->steps;
        status.from_earlier_boot = journal->boot_id != boot;
        status.being_restored = !status.session.alive && !DeviceLock::try_take(folder, journal->device_key);
      } catch (const std::exception& error) {
        status.damaged = error.what();
      }
      journals.push_back(std::move(status));
    }
  } catch (const std::exception&) {
    // A folder that cannot be trusted contains no journals of ours; opening a session reports the reason.
  }
  return journals;
}

}  // namespace ergotune
