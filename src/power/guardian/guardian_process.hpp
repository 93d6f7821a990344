// The guardian process, as used by its session. It runs in its own process session (setsid) and restores the settings
// when the session ends.
//
// It is a new program (fork and exec of /proc/self/exe with a hidden verb), not a bare fork: a session may have
// threads, so that only async-signal-safe calls would be allowed after a fork, while restoring needs memory, files and
// the driver's library. All steps that can fail (program, state folder, driver, device) take place before it reports
// that it is ready, and nothing is changed before. It inherits two descriptors: the socket to the session (3) and the
// device's lock (4), so that the device remains locked until restoring has finished.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>

#include "power/guardian/guardian_protocol.hpp"
#include "power/guardian/journal.hpp"

namespace ergotune {

/// Returns the program that implements the guardian's verb and sets `verb`; an empty string if there is none.
std::string guardian_program(std::string& verb);
/// To be called in the child of a fork; async-signal-safe. Starts a program that inherits the descriptors `kept` as 0,
/// 1, 2, ... and no others.
[[noreturn]] void become(const char* program, char* const* arguments, std::span<int> kept);

class GuardianProcess {
 public:
  GuardianProcess() = default;
  GuardianProcess(const GuardianProcess&) = delete;
  GuardianProcess& operator=(const GuardianProcess&) = delete;
  ~GuardianProcess() { abandon(); }

  /// Starts a guardian and waits until it is ready. Throws UserError with the reason if it refuses or takes longer than
  /// `timeout` s.
  void start(const Control& control, const StateFolder& folder, const DeviceLock& lock, double timeout,
             int restore_attempts);
  /// True while the process runs.
  bool alive() const;
  pid_t pid() const { return pid_; }
  /// Descriptor for poll(), readable once the guardian ends; -1 if there is no guardian.
  int descriptor() const { return stream_ ? stream_->in() : -1; }
  /// Asks the guardian to restore and to end. Returns false if it does not answer within `timeout` s.
  bool finish(RestoreReport& report, double timeout);
  /// Reaps and forgets a guardian that has ended. A running one notices the closed socket and restores.
  void abandon();

 private:
  pid_t pid_ = -1;
  std::optional<guardian::Stream> stream_;
};

}  // namespace ergotune
