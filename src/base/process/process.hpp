// Child processes: compilers, workers, the guardian, and the tests' way to drive the command from outside.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/error.hpp"

namespace ergotune {

struct ProcessOptions {
  std::map<std::string, std::string> environment;  ///< added to ours
  std::string folder;                              ///< working folder; empty: ours
  std::string input;                               ///< standard input
  double timeout = 0;                              ///< s; 0: none. Past it the whole process group is killed
  std::size_t output_limit = 16u << 20;            ///< bytes kept of each stream
};

struct ProcessResult {
  int exit_code = -1;  ///< -1 when it ended by a signal
  int signal = 0;
  bool timed_out = false;
  std::string out, err;
  bool ok() const { return exit_code == 0; }
};

/// No process at all can be started, for want of memory, processes or descriptors: the machine's fault, not the
/// program's.
class NoProcess : public Error {
 public:
  using Error::Error;
};

/// Runs a program to its end in its own process group, no shell. Throws Error when it cannot be started, NoProcess
/// where nothing can.
ProcessResult run_process(const std::vector<std::string>& arguments, const ProcessOptions& options = {});

/// A running child whose process group dies with this object.
class ChildProcess {
 public:
  /// `kept_descriptor`, when >= 0, is inherited as descriptor 3, `output` as standard output.
  static ChildProcess start(const std::vector<std::string>& arguments, const ProcessOptions& options = {},
                            int kept_descriptor = -1, int output = -1);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();
  pid_t pid() const { return pid_; }
  void kill(int signal = 9);
  /// Reaps it; nullopt when it still runs after `seconds` (negative: wait for ever). Returns the wait status.
  std::optional<int> wait(double seconds = -1);

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_ = -1;
};

/// Reaps a child of ours as soon as it ends; false when it still runs after `seconds`.
bool reap(pid_t child, double seconds, int* status = nullptr);

/// Path of the running program (/proc/self/exe).
std::string own_program();

/// All processes below `pid`, parents before their children, at one moment: including those that ended without being
/// waited for. Orphans are not among them, unless their reaper is.
std::vector<pid_t> descendants_of(pid_t pid);

}  // namespace ergotune
