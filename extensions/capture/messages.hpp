// The messages between a library inside an unmodified program and the command that started the program: lists of
// strings over a Unix socket.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "base/messages/message_stream.hpp"

namespace ergotune::capture {

/// The first string says what it is; there is always one.
struct Message : std::vector<std::string> {
  using std::vector<std::string>::vector;
};

/// The environment variable with the socket's path.
inline constexpr const char* kSocketVariable = "ERGOTUNE_LAYER_SOCKET";
/// Of both ends; a library answers no command of another version.
inline constexpr const char* kProtocol = "1";
/// A source may be large, a list of strings is short.
inline constexpr FrameKind kKind{"ERGC", 1, 1u << 30, {256u << 20, 64, false}};

inline std::string encode(const Message& message) {
  return encode_frame(kKind, 1, Writer(kKind.limits)(static_cast<const std::vector<std::string>&>(message)).take());
}

/// Throws FormatError when it is not exactly one message.
inline Message decode(const Frame& frame, std::type_identity<Message> = {}) {
  Reader reader(frame.payload, kKind.limits);
  Message message;
  reader(static_cast<std::vector<std::string>&>(message));
  reader.end();
  if (frame.type != 1 || message.empty()) throw FormatError("bytes that are not a message");
  return message;
}

using Stream = MessageStream<Message>;

}  // namespace ergotune::capture
