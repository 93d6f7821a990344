// Runs programs of the user so that no process of them survives: a small separate process adopts all processes that
// they start (daemons included) and ends them when the run is over, at the time limit, or when its session has ended in
// any way.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "base/messages/message_stream.hpp"
#include "base/process/process.hpp"

namespace ergotune {

struct SupervisedRun {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;  ///< added to this process's
  std::string folder;                              ///< working folder
  double time_limit = 0;                           ///< s; 0: none
  std::uint64_t kept_bytes = 1u << 20;             ///< of each stream, the last ones
  std::string whole_out;                           ///< file for the complete standard output; empty: none
};
inline auto fields(SupervisedRun& run) {
  auto& [arguments, environment, folder, time_limit, kept_bytes, whole_out] = run;
  return std::tie(arguments, environment, folder, time_limit, kept_bytes, whole_out);
}

struct SupervisedResult {
  std::string not_started;     ///< why it was not started; empty if it ran
  std::string nothing_starts;  ///< why no process at all can be started; Supervisor::run() throws it
  std::string not_whole;       ///< why SupervisedRun::whole_out is incomplete
  int exit_code = -1;          ///< -1 if it was ended by a signal
  int signal = 0;
  bool timed_out = false;
  bool stopped = false;  ///< ended by Supervisor::stop()
  std::string out, err;  ///< the last SupervisedRun::kept_bytes
  std::uint64_t out_bytes = 0, err_bytes = 0;
  double begin = 0, end = 0;  ///< host_seconds(): before its start, and after its end
  double cpu_seconds = 0;     ///< user and system, of the program and the children that it waited for
  std::uint64_t peak_bytes = 0;
  std::int32_t left_behind = 0;  ///< processes that still ran after its end, and were ended
  bool ok() const { return not_started.empty() && !timed_out && !stopped && exit_code == 0; }
};
inline auto fields(SupervisedResult& result) {
  auto& [not_started, nothing_starts, not_whole, exit_code, signal, timed_out, stopped, out, err, out_bytes, err_bytes,
         begin, end, cpu_seconds, peak_bytes, left_behind] = result;
  return std::tie(not_started, nothing_starts, not_whole, exit_code, signal, timed_out, stopped, out, err, out_bytes,
                  err_bytes, begin, end, cpu_seconds, peak_bytes, left_behind);
}

/// The messages between a session and its supervising process.
using SupervisorMessage = std::variant<SupervisedRun, SupervisedResult>;
inline constexpr FrameKind kSupervisorKind{"ERGS", 1};
std::string encode(const SupervisorMessage& message);
SupervisorMessage decode(const Frame& frame, std::type_identity<SupervisorMessage> = {});
using SupervisorStream = MessageStream<SupervisorMessage>;
/// Longest time to end all processes, s.
inline constexpr double kLongestEnd = 10;

/// Starts the supervising process on demand and sends it runs. run() must not be called by several threads at once.
class Supervisor {
 public:
  /// `command`: starts the process; "--descriptor 3" is appended, and it has to call run_supervisor().
  explicit Supervisor(std::vector<std::string> command) : command_(std::move(command)) {}
  /// Waits until all processes have ended.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Runs a program with empty standard input and without a terminal, in its own session and process group. Throws
  /// NoProcess if no process can be started or supervised, Error if the supervising process died.
  SupervisedResult run(const SupervisedRun& what);
  /// Ends the running program, whose result has `stopped` set; if none runs, the next run, until forget_stop().
  /// Thread-safe.
  void stop();
  /// Cancels a stop() that has not taken effect. Call it on the thread of run().
  void forget_stop();

 private:
  void start();
  void end();
  std::vector<std::string> command_;
  std::mutex mutex_;  ///< guards opening and closing of stream_, and stopping_
  std::optional<SupervisorStream> stream_;
  bool stopping_ = false;
  std::optional<ChildProcess> process_;
};

/// Main function of the supervising process: serves the session at the other end until it has gone. Returns the exit
/// code.
int run_supervisor(int descriptor);

}  // namespace ergotune
