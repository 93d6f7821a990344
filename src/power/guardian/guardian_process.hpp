// The guardian as its session sees it: a process of its own session (setsid) that restores when the session
// ends.
//
// It is a fresh program (fork and exec of /proc/self/exe with a hidden verb), not a bare fork: a session may
// have threads, and after a fork only async-signal-safe calls would be allowed, while restoring needs memory,
// files and the driver's library. Everything it could fail at (program, state folder, driver, device) happens
// before it says "ready", and nothing is changed before that. It inherits two descriptors: the socket to the
// session (3) and the device's lock (4), so that the device stays locked until it has finished.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>

#include "power/guardian/guardian_protocol.hpp"
#include "power/guardian/journal.hpp"

namespace ergotune {

/// The program that understands the guardian's verb, and that verb; empty when there is none.
std::string guardian_program(std::string& verb);
/// In the child of a fork, async-signal-safe: starts a program that has these descriptors as 0, 1, 2, ... and no
/// others.
[[noreturn]] void become(const char* program, char* const* arguments, std::span<int> kept);

class GuardianProcess {
 public:
  GuardianProcess() = default;
  GuardianProcess(const GuardianProcess&) = delete;
  GuardianProcess& operator=(const GuardianProcess&) = delete;
  ~GuardianProcess() { abandon(); }

  /// Starts one and waits until it is ready. Throws UserError with the reason when that takes longer than
  /// `timeout` s.
  void start(const Control& control, const StateFolder& folder, const DeviceLock& lock, double timeout,
             int restore_attempts);
  /// True while it is there.
  bool alive() const;
  pid_t pid() const { return pid_; }
  /// Readable when the guardian ends: for poll().
  int descriptor() const { return stream_ ? stream_->in() : -1; }
  /// Asks it to restore and to end; false when it did not answer within `timeout` s.
  bool finish(RestoreReport& report, double timeout);
  /// Reaps a guardian that has ended and forgets it. A living one sees the closed socket and restores.
  void abandon();

 private:
  pid_t pid_ = -1;
  std::optional<guardian::Stream> stream_;
};

}  // namespace ergotune
