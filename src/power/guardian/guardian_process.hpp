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

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/messages/message_stream.hpp"
#include "power/guardian/guardian.hpp"
#include "power/guardian/journal.hpp"

// Messages between a session and its guardian, and between the guardian and the process that restores.

namespace ergotune::guardian {

/// From the guardian: the device is open, and settings may be changed from now on.
struct Ready {};
/// From the guardian: it cannot guard, for the reason in `message`.
struct Refused {
  std::string message;
};
/// From the session: it has ended, and all settings must be restored.
struct Finish {};
/// From the restoring process: it begins with this step of the journal.
struct At {
  std::uint64_t step = 0;
};

using Message = std::variant<Ready, Refused, Finish, At, RestoreReport>;

inline constexpr FrameKind kKind{"ERGG", 1};

std::string encode(const Message& message);
/// Throws FormatError unless the frame contains exactly one valid message.
Message decode(const Frame& frame, std::type_identity<Message> = {});

using Stream = MessageStream<Message>;

/// Sends a message; does nothing if the other end has closed the stream.
void answer(Stream& stream, const Message& message);

}  // namespace ergotune::guardian

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

/// Restores as restore_journal() does, but if a driver call blocks or ends the process, only its own step fails:
/// another process carries out the remaining steps, and the caller does not wait forever. Restores in this process if
/// none can be started. `round.control` is ignored. Takes at most 20 s with a driver that blocks.
RestoreReport restore_in_process(const StateFolder& folder, const std::filesystem::path& file,
                                 const ControlEnvironment& environment, const RestoreOptions& round = {});

/// First argument of the guardian that starts it as a restoring process.
inline constexpr const char* kRestoreArgument = "--restore";
/// Main function of the restoring process. `arguments`: those after kRestoreArgument. Returns the exit code.
int run_restorer(const std::vector<std::string>& arguments);

}  // namespace ergotune
