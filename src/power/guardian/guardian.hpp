// The only way to change a clock or a limit. A ControlSession holds the device's lock, writes a journal of
// what must be put back (fsync'd) before the first change, and has a guardian process alive that puts it back
// however the session ends, SIGKILL of the session and of its process group included.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "power/controls/control.hpp"

namespace ergotune {

/// How one restore step went.
struct RestoreOutcome {
  RestoreStep step;
  ControlResult result;
  /// "power limit 300 W again", "locked clocks: vanished with the restart of the machine".
  std::string words;
};

/// What came of putting a device back.
struct RestoreReport {
  std::string device;
  std::vector<RestoreOutcome> outcomes;
  /// True when every step is verified done and the journal is cleared.
  bool complete = true;
  /// One sentence for people; empty when there was nothing to do.
  std::string summary;
};

/// Who holds a device, or held it.
struct DeviceHolder {
  pid_t pid = 0;
  std::string command;
  double since = 0;  ///< s since the epoch
  bool alive = false;
};

struct ControlSessionOptions {
  /// Go on although another process's lock seems to be in force (it cannot be restored, only reset).
  bool take_over = false;
  /// The description of this session for others; empty: the process's own command line.
  std::string command;
  /// Waits this long (s) for the guardian of a session that died to finish restoring.
  double wait_for_guardian = 10;
  /// Gives up on a guardian that does not answer within this time (s).
  double guardian_timeout = 10;
  /// Rounds of restoring, with pauses of 0.1, 0.2, 0.4 ... s between them. A guardian whose session died
  /// makes three more, and one whose device is lost begins again with three more.
  int restore_attempts = 6;
};

/// Not copyable, used by one thread at a time. Every change of clocks and limits in ergotune goes through
/// set().
class ControlSession {
 public:
  /// Takes the device: replays a stale journal first, then locks, then starts the guardian. Throws UserError
  /// when another session holds the device (naming it), when a foreign lock seems to be in force, when the
  /// state folder cannot be written, or when no guardian can be started: then nothing is changed.
  static std::unique_ptr<ControlSession> open(std::unique_ptr<Control> control,
                                              const ControlSessionOptions& options = {});
  /// Restores as finish() does.
  ~ControlSession();
  ControlSession(const ControlSession&) = delete;
  ControlSession& operator=(const ControlSession&) = delete;

  Control& control();
  /// Sets one quantity: journal first, guardian alive, then the change. A set that is not needed (the value
  /// is already set by this session) is not made.
  ControlResult set(ControlQuantity quantity, double value);
  /// Sets several: checks the graphics/memory pair before anything changes, then memory, core, power.
  ControlResult apply(const ControlSetting& setting);
  /// Whether what this session has set is still set, as far as the hardware tells (Control::check): the first that is
  /// not, or ok.
  ControlResult check();
  /// Takes nothing for granted any more: the next set() of a value is made even where it was made before.
  void doubt();
  /// Whether it goes on where another process's lock is in force.
  bool taking_over() const;
  /// What this session has set so far.
  const ControlSetting& current() const;
  /// Number of changes made.
  std::uint64_t changes() const;
  /// The guardian's process id; 0 when the control is guarded elsewhere.
  pid_t guardian_pid() const;
  /// Notes to pass on to the user (a stale journal was replayed, a foreign lock taken over, the guardian
  /// replaced).
  std::vector<std::string> notes() const;
  /// Ends the session: everything is put back and verified. Safe to call twice.
  RestoreReport finish();

 private:
  struct State;
  explicit ControlSession(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Reports of this process's sessions that ended and could not put everything back, since it was asked last. The
/// command names them at its end and exits with 1.
std::vector<RestoreReport> take_failed_restores();
/// Such a report for people: its summary, what failed and why, a line each.
std::string description_of(const RestoreReport& report);

/// What `clocks status` shows of a device's journal.
struct JournalStatus {
  std::string device, device_key;
  DeviceHolder session;
  std::vector<RestoreStep> steps;
  bool from_earlier_boot = false;
  /// Its session has ended, and its guardian is putting things back (or hangs in the driver while it does).
  bool being_restored = false;
  /// Not empty when the journal cannot be read: the reason.
  std::string damaged;
  std::filesystem::path file;
};
/// The journals in the state folder, those of living sessions included; never throws.
std::vector<JournalStatus> list_journals(
    const ControlEnvironment& environment = ControlEnvironment::from_environment());

/// Replays every journal whose session and guardian are gone. After a restart of the machine clocks and
/// limits are the machine's own again: then nothing is written unless `replay_after_restart`, and the journal
/// is cleared. Called by every start of the command that may change clocks, and by `ergotune clocks restore`
/// (replay_after_restart).
std::vector<RestoreReport> replay_stale_journals(
    const ControlEnvironment& environment = ControlEnvironment::from_environment(), bool replay_after_restart = false);

/// The guardian's own main. `arguments` are those after the verb. Returns the exit code.
int run_guardian(const std::vector<std::string>& arguments);
/// Says that this program, run as `program VERB ...`, calls run_guardian: called by the mains of ergotune and
/// ergotuned before anything else. Programs that do not (Python) use the ergotune command beside the library.
void enable_guardian_verb(const std::string& verb = "guardian");

}  // namespace ergotune
