// The session's side of one worker process.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "evaluate/channel.hpp"

namespace ergotune {

class WorkerProcess {
 public:
  /// Starts the process and sends it its setup. Throws Error when it cannot be started.
  WorkerProcess(const std::vector<std::string>& command, const protocol::Setup& setup);
  /// Ends it and everything it has started.
  ~WorkerProcess();
  WorkerProcess(WorkerProcess&&) = delete;

  protocol::Channel& channel() { return channel_; }
  pid_t pid() const { return process_.pid(); }
  /// Kills it with all its descendants (a compiler that a worker runs lives in a group of its own).
  void kill();
  /// How it ended, in words: "signal 11 (Segmentation fault)", "exit code 3", with the last of its standard
  /// error. Waits for its end.
  struct Ending {
    std::string words;
    bool by_signal = false;
    int signal = 0;
    int exit_code = 0;
    std::string last_words;
  };
  Ending ending();

 private:
  struct Log {
    int descriptor = -1;
    Log();
    ~Log();
  };
  WorkerProcess(const std::vector<std::string>& command, const protocol::Setup& setup,
                protocol::SocketPair sockets);
  Log log_;
  protocol::Channel channel_;
  ChildProcess process_;
};

}  // namespace ergotune
