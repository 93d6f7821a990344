// Connection to another process of ergotune: its messages, and how it ended.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/messages/message_stream.hpp"

namespace ergotune {

/// How a process ended.
struct ProcessEnding {
  std::string description;  ///< "signal 11 (Segmentation fault)", "exit code 3"
  int signal = 0;           ///< 0: not ended by a signal
  std::string output_tail;  ///< end of its standard error, as far as it belongs to the last request
  /// Returns `message` followed by output_tail.
  std::string added_to(std::string message) const {
    return output_tail.empty() ? message : message + "\n" + output_tail;
  }
};

/// A child's standard error, in memory, so that nothing is lost in a crash.
class ChildLog {
 public:
  ChildLog();
  ChildLog(const ChildLog&) = delete;
  ChildLog& operator=(const ChildLog&) = delete;
  ~ChildLog();
  int descriptor() const { return descriptor_; }

  /// Discards the present contents.
  void begin();
  /// Returns how the child ended; `status` as returned by waitpid().
  ProcessEnding ending(int status) const;

 private:
  std::string end_of_text() const;

  int descriptor_ = -1;
  off_t begin_ = 0;
};

template <class Message>
class Transport {
 public:
  /// Takes ownership of the socket.
  Transport(const FrameKind& kind, int socket, std::size_t preamble = 0) : stream_(kind, socket, socket, preamble) {}
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  MessageStream<Message>& stream() { return stream_; }
  /// Called before a request: earlier output of the process belongs to other requests.
  virtual void begin_request() {}
  /// Ends the process and everything that it has started, if it still runs; returns how it ended.
  virtual ProcessEnding end() = 0;
  /// Process id on this machine; 0 if it runs on another one.
  virtual int process() const { return 0; }

 private:
  MessageStream<Message> stream_;
};

}  // namespace ergotune
