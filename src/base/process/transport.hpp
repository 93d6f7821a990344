// Connection to another process of ergotune: its messages, and how it ended.
#pragma once

#include "base/messages/message_stream.hpp"
#include "base/process/child_log.hpp"

namespace ergotune {

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
