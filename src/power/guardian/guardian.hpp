// The only way to change a clock or a limit. A ControlSession holds the device's lock, writes a journal of the original
// settings to disk (fsync) before the first change, and keeps a guardian process running, which restores them however
// the session ends, even by SIGKILL of the session and its process group.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "power/controls/control.hpp"

namespace ergotune {

/// Outcome of a restore step.
struct RestoreOutcome {
  RestoreStep step;
  ControlResult result;
  /// For users: "power limit 300 W again", "locked clocks: vanished with the restart of the machine".
  std::string description;
};

/// Outcome of restoring a device.
struct RestoreReport {
  std::string device;
  std::vector<RestoreOutcome> outcomes;
  /// True if all steps were verified and the journal was deleted.
  bool complete = true;
  /// One sentence for users; empty if there was nothing to restore.
  std::string summary;
};

/// The process that holds or held a device.
struct DeviceHolder {
  pid_t pid = 0;
  std::string command;
  double since = 0;  ///< s since the Unix epoch
  bool alive = false;
};

struct ControlSessionOptions {
  /// Continue although another process seems to have locked clocks, which cannot be restored, only reset.
  bool take_over = false;
  /// Description of this session shown to other users; empty: the command line of the process.
  std::string command;
  /// Time in s to wait for the guardian of a dead session to finish restoring.
  double wait_for_guardian = 10;
  /// Time in s after which a guardian that does not answer is given up.
  double guardian_timeout = 10;
  /// Number of attempts to restore, with pauses of 0.1, 0.2, 0.4 ... s between them. A guardian makes three more if its
  /// session died, and starts again with three more if the device is lost.
  int restore_attempts = 6;
};

/// Changes the settings of one device. All changes of clocks and limits in ergotune go through set(). To be used by one
/// thread at a time.
class ControlSession {
 public:
  /// Opens a session on a device: replays a stale journal, takes the lock and starts the guardian. Throws UserError,
  /// before anything is changed, if another session holds the device (which is named), if another process seems to have
  /// locked clocks, if the state folder is not writable, or if no guardian can be started.
  static std::unique_ptr<ControlSession> open(std::unique_ptr<Control> control,
                                              const ControlSessionOptions& options = {});
  /// Restores as finish() does.
  ~ControlSession();
  ControlSession(const ControlSession&) = delete;
  ControlSession& operator=(const ControlSession&) = delete;

  Control& control();
  /// Sets one quantity after the journal is on disk and while the guardian is running. Does nothing if this session has
  /// already set the value.
  ControlResult set(ControlQuantity quantity, double value);
  /// Sets several quantities: checks the pair of core and memory clock first, then sets memory clock, core clock and
  /// power limit.
  ControlResult apply(const ControlSetting& setting);
  /// Checks that the values set by this session are still set, as far as the hardware reports them (Control::check).
  /// Returns the first failure, or ok.
  ControlResult check();
  /// Forgets which values are set: the next set() takes effect even if it repeats a value.
  void doubt();
  /// True if the session may continue despite another process's lock (ControlSessionOptions::take_over).
  bool taking_over() const;
  /// The values that this session has set so far.
  const ControlSetting& current() const;
  /// Process id of the guardian; 0 if another process guards the control.
  pid_t guardian_pid() const;
  /// Notes for the user: a stale journal was replayed, another process's lock was overridden, the guardian was
  /// replaced.
  std::vector<std::string> notes() const;
  /// Ends the session: restores and verifies all settings. May be called twice.
  RestoreReport finish();

 private:
  struct State;
  explicit ControlSession(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Returns the reports of this process's sessions that could not restore all settings, since the last call. The command
/// prints them at its end and exits with 1.
std::vector<RestoreReport> take_failed_restores();
/// Formats such a report for users: its summary and one line for each failure with its reason.
std::string description_of(const RestoreReport& report);

/// A device's journal, as shown by `clocks status`.
struct JournalStatus {
  std::string device, device_key;
  DeviceHolder session;
  std::vector<RestoreStep> steps;
  bool from_earlier_boot = false;
  /// The session has ended, and its guardian is restoring (or blocked in the driver).
  bool being_restored = false;
  /// Reason why the journal cannot be read; empty if it can.
  std::string damaged;
  std::filesystem::path file;
};
/// Returns the journals in the state folder, including those of running sessions. Does not throw.
std::vector<JournalStatus> list_journals(
    const ControlEnvironment& environment = ControlEnvironment::from_environment());

/// Replays all journals whose session and guardian have ended. A restart of the machine resets clocks and limits: then
/// the journal is deleted without writing settings, unless `replay_after_restart`. Called at each start of a command
/// that may change clocks, and by `ergotune clocks restore` (with replay_after_restart).
std::vector<RestoreReport> replay_stale_journals(
    const ControlEnvironment& environment = ControlEnvironment::from_environment(), bool replay_after_restart = false);

/// Main function of the guardian. `arguments`: those after the verb. Returns the exit code.
int run_guardian(const std::vector<std::string>& arguments);
/// Declares that this program calls run_guardian when it is run as `program VERB ...`. The mains of ergotune and
/// ergotuned call it first. Other programs (Python) use the ergotune command installed with the library.
void enable_guardian_verb(const std::string& verb = "guardian");

/// Adds a report for take_failed_restores().
void note_failed_restore(const RestoreReport& report);

}  // namespace ergotune
