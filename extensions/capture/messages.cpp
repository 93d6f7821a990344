#include "capture/messages.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>

namespace ergotune::capture {
namespace {

// Beyond these nothing is a message: a source may be large, a list of texts is short.
constexpr std::size_t kMostTexts = 64, kMostBytes = 256u << 20;

void put(std::string& bytes, std::size_t number) {
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
}
std::size_t number_at(std::string_view bytes, std::size_t at) {
  std::size_t number = 0;
  for (std::size_t i = 0; i < 4; ++i)
    number |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return number;
}

}  // namespace

std::string encode(const Message& message) {
  std::string bytes;
  put(bytes, message.size());
  for (const std::string& text : message) {
    put(bytes, text.size());
    bytes += text;
  }
  return bytes;
}

Decoded decode(std::string_view bytes) {
  Decoded decoded;
  const auto damaged = [&] {
    decoded = {};
    decoded.state = Decoded::State::damaged;
    return decoded;
  };
  if (bytes.size() < 4) return decoded;
  const std::size_t count = number_at(bytes, 0);
  if (count == 0 || count > kMostTexts) return damaged();
  std::size_t at = 4;
  for (std::size_t i = 0; i < count; ++i) {
    if (bytes.size() - at < 4) return {};
    const std::size_t length = number_at(bytes, at);
    at += 4;
    if (length > kMostBytes) return damaged();
    if (length > bytes.size() - at) return {};
    decoded.message.emplace_back(bytes.substr(at, length));
    at += length;
  }
  decoded.state = Decoded::State::whole;
  decoded.size = at;
  return decoded;
}

bool send_message(int socket, const Message& message) {
  const std::string bytes = encode(message);
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t sent = ::send(socket, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_message(int socket, std::string& pending, Message& message) {
  while (true) {
    Decoded decoded = decode(pending);
    if (decoded.state == Decoded::State::damaged) return false;
    if (decoded.state == Decoded::State::whole) {
      pending.erase(0, decoded.size);
      message = std::move(decoded.message);
      return true;
    }
    char bytes[16384];
    const ssize_t got = ::recv(socket, bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    pending.append(bytes, static_cast<std::size_t>(got));
  }
}

}  // namespace ergotune::capture
