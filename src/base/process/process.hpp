// Child processes: compilers, workers, the guardian, and the command in tests.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/error.hpp"

namespace ergotune {

struct ProcessOptions {
  std::map<std::string, std::string> environment;  ///< added to the environment of this process
  std::string folder;                              ///< working folder; empty: that of this process
  std::string input;                               ///< standard input
  double timeout = 0;                              ///< s; 0: none. After that the process group is killed
  std::size_t output_limit = 16u << 20;            ///< maximum number of bytes kept of each stream
};

struct ProcessResult {
  int exit_code = -1;  ///< -1 if a signal ended the process
  int signal = 0;
  bool timed_out = false;
  std::string out, err;
  bool ok() const { return exit_code == 0; }
};

/// No process can be started, for lack of memory, process ids or descriptors; not the fault of the program.
class NoProcess : public Error {
 public:
  using Error::Error;
};

/// Runs a program to its end in a separate process group, without a shell. Throws Error if it cannot be started,
/// NoProcess if no process can be.
ProcessResult run_process(const std::vector<std::string>& arguments, const ProcessOptions& options = {});

/// A running child; its process group is killed when this object is destroyed.
class ChildProcess {
 public:
  /// `kept_descriptor`, if >= 0, is inherited as descriptor 3, and `output` as standard output.
  static ChildProcess start(const std::vector<std::string>& arguments, const ProcessOptions& options = {},
                            int kept_descriptor = -1, int output = -1);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();
  pid_t pid() const { return pid_; }
  void kill(int signal = 9);
  /// Reaps the child and returns its wait status; nullopt if it still runs after `seconds` (negative: waits forever).
  std::optional<int> wait(double seconds = -1);

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_ = -1;
};

/// Reaps a child of this process once it ends; returns false if it still runs after `seconds`.
bool reap(pid_t child, double seconds, int* status = nullptr);

/// Path of the running program (/proc/self/exe).
std::string own_program();

/// Returns all descendants of `pid` at one moment, parents before their children, including zombies. Orphans are
/// included only if they were reparented to one of these processes.
std::vector<pid_t> descendants_of(pid_t pid);

}  // namespace ergotune
