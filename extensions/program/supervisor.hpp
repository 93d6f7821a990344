// Programs of the user, run so that nothing of them is left behind: by a small process of its own, which adopts all
// that they start (daemons too) and ends it when the run is over, at the time limit, or when its session has ended in
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
  std::map<std::string, std::string> environment;  ///< added to ours
  std::string folder;                              ///< working folder
  double time_limit = 0;                           ///< s; 0: none
  std::uint64_t kept_bytes = 1u << 20;             ///< of each stream: its last ones
  std::string whole_out;                           ///< a file for all of standard output; empty: none
};
inline auto fields(SupervisedRun& run) {
  auto& [arguments, environment, folder, time_limit, kept_bytes, whole_out] = run;
  return std::tie(arguments, environment, folder, time_limit, kept_bytes, whole_out);
}

struct SupervisedResult {
  std::string not_started;     ///< why; empty where it ran
  std::string nothing_starts;  ///< why, where that is no fault of the program; Supervisor::run() throws it
  std::string not_whole;       ///< why SupervisedRun::whole_out is not
  int exit_code = -1;          ///< -1 when it ended by a signal
  int signal = 0;
  bool timed_out = false;
  bool stopped = false;  ///< ended by Supervisor::stop()
  std::string out, err;  ///< the last SupervisedRun::kept_bytes
  std::uint64_t out_bytes = 0, err_bytes = 0;
  double begin = 0, end = 0;  ///< host_seconds(): before its start, and when it had ended
  double cpu_seconds = 0;     ///< user and system, of it and the children that it waited for
  std::uint64_t peak_bytes = 0;
  std::int32_t left_behind = 0;  ///< processes that still ran when it had ended, and were ended
  bool ok() const { return not_started.empty() && !timed_out && !stopped && exit_code == 0; }
};
inline auto fields(SupervisedResult& result) {
  auto& [not_started, nothing_starts, not_whole, exit_code, signal, timed_out, stopped, out, err, out_bytes, err_bytes,
         begin, end, cpu_seconds, peak_bytes, left_behind] = result;
  return std::tie(not_started, nothing_starts, not_whole, exit_code, signal, timed_out, stopped, out, err, out_bytes,
                  err_bytes, begin, end, cpu_seconds, peak_bytes, left_behind);
}

/// The messages between a session and its supervisor.
using SupervisorMessage = std::variant<SupervisedRun, SupervisedResult>;
inline constexpr FrameKind kSupervisorKind{"ERGS", 1};
std::string encode(const SupervisorMessage& message);
SupervisorMessage decode(const Frame& frame, std::type_identity<SupervisorMessage> = {});
using SupervisorStream = MessageStream<SupervisorMessage>;
/// s that ending all processes may take.
inline constexpr double kLongestEnd = 10;

/// The way to such a process, which is started when it is needed. run() is called by one thread at a time.
class Supervisor {
 public:
  /// `command` starts it; it gets "--descriptor 3" appended and has to call run_supervisor().
  explicit Supervisor(std::vector<std::string> command) : command_(std::move(command)) {}
  /// Waits until all is ended.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Standard input is empty, no terminal, a session and process group of its own. Throws NoProcess when nothing at all
  /// can be started or kept, Error when the supervisor died.
  SupervisedResult run(const SupervisedRun& what);
  /// From any thread: ends what runs, whose run() says so; between two runs the next one, until forget_stop().
  void stop();
  /// What runs from now on is wanted. By the thread of run().
  void forget_stop();

 private:
  void start();
  void end();
  std::vector<std::string> command_;
  std::mutex mutex_;  ///< of stream_ being opened and closed, and of stopping_
  std::optional<SupervisorStream> stream_;
  bool stopping_ = false;
  std::optional<ChildProcess> process_;
};

/// The supervising process's whole life: serves the session at the other end until it is gone. Returns the exit code.
int run_supervisor(int descriptor);

}  // namespace ergotune
