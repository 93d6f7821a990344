// What a library inside an unmodified program and the command that started it tell each other: lists of texts over a
// Unix socket. Each message: the number of texts, then each one's length and bytes; numbers have 4 bytes, the lowest
// first.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune::capture {

/// The first text says what it is.
using Message = std::vector<std::string>;

/// The environment variable with the socket's path.
inline constexpr const char* kSocketVariable = "ERGOTUNE_LAYER_SOCKET";
/// Of both ends; a library answers no command of another version.
inline constexpr const char* kProtocol = "1";

std::string encode(const Message& message);

struct Decoded {
  enum class State { whole, incomplete, damaged } state = State::incomplete;
  Message message;
  /// Bytes that it took.
  std::size_t size = 0;
};
/// The message that `bytes` begin with. Never throws, whatever the bytes.
Decoded decode(std::string_view bytes);

/// Both return false when the other end is gone, or talks nonsense.
bool send_message(int socket, const Message& message);
/// Waits. `pending` holds what came after the last message.
bool receive_message(int socket, std::string& pending, Message& message);

}  // namespace ergotune::capture
