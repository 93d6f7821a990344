// Messages over descriptors: a socket, or the ends of two pipes.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>

#include "base/clock.hpp"
#include "base/messages/frames.hpp"

namespace ergotune {

/// The other end has closed the connection.
class Disconnected : public Error {
 public:
  Disconnected() : Error("the other end of the connection is gone") {}
};

/// Frames over descriptors. Data that cannot be written at once is buffered; only send() and wait() block.
class FrameStream {
 public:
  /// Takes ownership of both descriptors, which may be equal, and makes them non-blocking; -1: unused direction.
  /// `preamble` as for FrameCutter.
  FrameStream(const FrameKind& kind, int in, int out, std::size_t preamble = 0);
  FrameStream(const FrameStream&) = delete;
  FrameStream& operator=(const FrameStream&) = delete;
  ~FrameStream();

  int in() const { return in_; }
  int out() const { return out_; }
  /// The events for which to poll in(), including those of out() if it is the same descriptor.
  short events() const;
  /// Writes buffered data as far as the other end reads.
  void flush();
  /// Number of buffered bytes.
  std::size_t unsent() const { return unsent_.size() - sent_; }
  /// True if the other end has closed, and all its messages were taken.
  bool ended() const { return ended_; }
  /// True if the other end cannot receive any more.
  bool broken() const { return broken_; }
  /// Times of host_seconds() at which bytes last arrived, and at which a message was last sent.
  double heard_at() const { return heard_at_; }
  double sent_at() const { return sent_at_; }

 protected:
  void post_frame(const std::string& frame);
  void send_frame(const std::string& frame);
  std::optional<Frame> next_frame();
  /// Returns false if nothing can be read within `seconds` (negative: waits forever).
  bool wait(double seconds) const;

 private:
  int in_, out_;
  std::string unsent_;
  std::size_t sent_ = 0;
  FrameCutter cutter_;
  bool ended_ = false, broken_ = false;
  double heard_at_, sent_at_;
};

/// `Message` is the type of a protocol that defines, in its namespace,
///   std::string encode(const Message& message);
///   Message decode(const Frame& frame, std::type_identity<Message>);
template <class Message>
class MessageStream : public FrameStream {
 public:
  using FrameStream::FrameStream;
  /// Queues a message and writes as much as possible without blocking.
  void post(const Message& message) { post_frame(encode(message)); }
  /// Sends a message; blocks until everything is written. Throws Disconnected.
  void send(const Message& message) { send_frame(encode(message)); }
  /// Returns the next message if it has arrived. Throws FormatError for invalid data.
  std::optional<Message> next() {
    const std::optional<Frame> frame = next_frame();
    return frame ? std::optional<Message>(decode(*frame, std::type_identity<Message>())) : std::nullopt;
  }
  /// Returns the next message; nullopt if none arrives within `seconds` (negative: waits forever). Throws Disconnected
  /// at the end of the stream and FormatError for invalid data.
  std::optional<Message> receive(double seconds) {
    const double deadline = host_seconds() + seconds;
    while (true) {
      if (std::optional<Message> message = next()) return message;
      if (ended()) throw Disconnected();
      if (!wait(seconds < 0 ? -1 : std::max(0.0, deadline - host_seconds()))) return std::nullopt;
    }
  }
};

/// Creates two connected sockets, close-on-exec. Throws Error.
struct SocketPair {
  int ours = -1, theirs = -1;
};
SocketPair make_socket_pair();

}  // namespace ergotune
