// The way to one worker: carries typed messages there and back, and knows how the worker was started and how
// it ended. Today a worker is a child process with a socket pair; any command that gives a pipe can be one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "evaluate/live/channel.hpp"

namespace ergotune {

class WorkerTransport {
 public:
  /// How a worker ended.
  struct Ending {
    std::string words;       ///< "signal 11 (Segmentation fault)", "exit code 3"
    int signal = 0;          ///< 0: it ended by itself
    std::string last_words;  ///< the end of its standard error, as far as it is about the last request
    /// `message` with the last words below it.
    std::string added_to(std::string message) const {
      return last_words.empty() ? message : message + "\n" + last_words;
    }
  };

  explicit WorkerTransport(protocol::Channel channel) : channel_(std::move(channel)) {}
  WorkerTransport(const WorkerTransport&) = delete;
  WorkerTransport& operator=(const WorkerTransport&) = delete;
  virtual ~WorkerTransport() = default;

  protocol::Channel& channel() { return channel_; }
  /// A request goes out: what the worker has said so far was about something else.
  virtual void asked() {}
  /// Ends the worker with everything it has started, where it still lives, and says how it ended.
  virtual Ending end() = 0;
  /// Process id of the worker on this machine; 0 where it runs elsewhere.
  virtual int process() const { return 0; }

 private:
  protocol::Channel channel_;
};

/// Starts a worker and sends it its setup. Throws Error when it cannot be started.
using StartLink = std::function<std::unique_ptr<WorkerTransport>(const protocol::Setup&)>;

/// Workers that are children of this process: `command` gets "--descriptor N --log N" appended.
StartLink start_children(std::vector<std::string> command);

}  // namespace ergotune
