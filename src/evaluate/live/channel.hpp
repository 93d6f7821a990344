// Messages over a connected stream socket.
#pragma once

#include <optional>

#include "evaluate/live/protocol.hpp"

namespace ergotune::protocol {

/// The other end is gone.
class Disconnected : public Error {
 public:
  Disconnected() : Error("the other end of the connection is gone") {}
};

class Channel {
 public:
  /// Takes ownership of the descriptor.
  explicit Channel(int descriptor) : descriptor_(descriptor) {}
  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&& other) noexcept;
  ~Channel();

  int descriptor() const { return descriptor_; }
  /// Blocks until everything is written. Throws Disconnected.
  void send(const Message& message);
  /// The next message; nullopt after `seconds` without one (negative: waits for ever). Throws Disconnected at
  /// the end of the stream and ProtocolError on garbage.
  std::optional<Message> receive(double seconds);

 private:
  int descriptor_ = -1;
  FrameReader reader_;
};

/// Two connected channels' descriptors, close-on-exec. Throws Error.
struct SocketPair {
  int ours = -1, theirs = -1;
};
SocketPair make_socket_pair();

}  // namespace ergotune::protocol
