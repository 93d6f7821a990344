// Messages over a pipe that must never be waited for: what cannot be written at once is kept until it can.
#pragma once

#include <optional>
#include <string>

#include "cluster/agent_protocol.hpp"

namespace ergotune::agents {

class Pipe {
 public:
  /// Takes ownership of both descriptors, which may be the same, and makes them non-blocking.
  Pipe(int in, int out, std::size_t preamble = 0);
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe();

  int in() const { return in_; }
  int out() const { return out_; }
  /// Queues a message and writes what can be written now.
  void send(const Message& message);
  void flush();
  /// Bytes that wait for the other end to read.
  std::size_t unsent() const { return unsent_.size() - sent_; }
  /// The next message, if it has come. Throws FormatError on garbage.
  std::optional<Message> next();
  /// The other end is gone, and all that it said was taken.
  bool ended() const { return ended_; }
  /// Nothing that is sent reaches the other end any more.
  bool broken() const { return broken_; }
  /// On host_seconds(): when something came last, and when something was sent last.
  double heard_at() const { return heard_at_; }
  double said_at() const { return said_at_; }

 private:
  int in_, out_;
  std::string unsent_;
  std::size_t sent_ = 0;
  FrameCutter cutter_;
  bool ended_ = false, broken_ = false;
  double heard_at_, said_at_;
};

}  // namespace ergotune::agents
