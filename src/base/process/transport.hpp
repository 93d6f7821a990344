// The way to another process of ergotune: its messages, how it was started, and how it ended.
#pragma once

#include "base/messages/message_stream.hpp"
#include "base/process/child_log.hpp"

namespace ergotune {

template <class Message>
class Transport {
 public:
  /// For a socket, which it owns.
  Transport(const FrameKind& kind, int socket, std::size_t preamble = 0) : stream_(kind, socket, socket, preamble) {}
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  MessageStream<Message>& stream() { return stream_; }
  /// A request goes out: what the process has logged so far was about something else.
  virtual void begin_request() {}
  /// Ends the process with everything it has started, where it still lives, and says how it ended.
  virtual ProcessEnding end() = 0;
  /// Its id on this machine; 0 where it runs elsewhere.
  virtual int process() const { return 0; }

 private:
  MessageStream<Message> stream_;
};

}  // namespace ergotune
