// Messages over descriptors: a socket, or the two ends of pipes.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>

#include "base/clock.hpp"
#include "base/messages/frames.hpp"

namespace ergotune {

/// The other end is gone.
class Disconnected : public Error {
 public:
  Disconnected() : Error("the other end of the connection is gone") {}
};

/// Frames over descriptors. What cannot be written at once is kept until it can; only send() and wait() block.
class FrameStream {
 public:
  /// Takes ownership of both descriptors, which may be the same, and makes them non-blocking; -1 for a direction that
  /// is not used. `preamble` as FrameCutter's.
  FrameStream(const FrameKind& kind, int in, int out, std::size_t preamble = 0);
  FrameStream(const FrameStream&) = delete;
  FrameStream& operator=(const FrameStream&) = delete;
  ~FrameStream();

  int in() const { return in_; }
  int out() const { return out_; }
  /// The events to poll in() for, where it is out() as well.
  short events() const;
  /// Writes what waits, as far as the other end reads.
  void flush();
  /// Bytes that wait for the other end to read.
  std::size_t unsent() const { return unsent_.size() - sent_; }
  /// The other end is gone, and all messages of it were taken.
  bool ended() const { return ended_; }
  /// Nothing that is sent reaches the other end any more.
  bool broken() const { return broken_; }
  /// On host_seconds(): when bytes came last, and when a message was sent last.
  double heard_at() const { return heard_at_; }
  double sent_at() const { return sent_at_; }

 protected:
  void post_frame(const std::string& frame);
  void send_frame(const std::string& frame);
  std::optional<Frame> next_frame();
  /// False after `seconds` (negative: never) without anything to read.
  bool wait(double seconds) const;

 private:
  int in_, out_;
  std::string unsent_;
  std::size_t sent_ = 0;
  FrameCutter cutter_;
  bool ended_ = false, broken_ = false;
  double heard_at_, sent_at_;
};

/// `Message` is a type of a protocol that has, in its namespace,
///   std::string encode(const Message& message);
///   Message decode(const Frame& frame, std::type_identity<Message>);
template <class Message>
class MessageStream : public FrameStream {
 public:
  using FrameStream::FrameStream;
  /// Queues a message and writes what can be written now.
  void post(const Message& message) { post_frame(encode(message)); }
  /// Blocks until everything is written. Throws Disconnected.
  void send(const Message& message) { send_frame(encode(message)); }
  /// The next message, if it has come. Throws FormatError on garbage.
  std::optional<Message> next() {
    const std::optional<Frame> frame = next_frame();
    return frame ? std::optional<Message>(decode(*frame, std::type_identity<Message>())) : std::nullopt;
  }
  /// The next message; nullopt after `seconds` without one (negative: waits for ever). Throws Disconnected at the end
  /// of the stream and FormatError on garbage.
  std::optional<Message> receive(double seconds) {
    const double deadline = host_seconds() + seconds;
    while (true) {
      if (std::optional<Message> message = next()) return message;
      if (ended()) throw Disconnected();
      if (!wait(seconds < 0 ? -1 : std::max(0.0, deadline - host_seconds()))) return std::nullopt;
    }
  }
};

/// Two connected sockets, close-on-exec. Throws Error.
struct SocketPair {
  int ours = -1, theirs = -1;
};
SocketPair make_socket_pair();

}  // namespace ergotune
