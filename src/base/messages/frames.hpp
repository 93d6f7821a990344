// Framing of all messages between processes of ergotune. A frame is: magic (4 bytes), version (1 byte), type (1 byte),
// two zero bytes, payload length (4 bytes), payload (base/messages/serialise.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/messages/serialise.hpp"

namespace ergotune {

/// The properties of all frames of a protocol.
struct FrameKind {
  std::string_view magic;  ///< 4 bytes
  std::uint8_t version = 0;
  /// Maximum size of a payload in bytes; a larger length is invalid.
  std::uint32_t largest = 1u << 30;
  SerialLimits limits = {};  ///< of the contents of payloads
};

constexpr std::size_t kFrameHeader = 12;  ///< size in bytes of magic and header

/// Returns the bytes of a frame. Throws FormatError if it is too large.
std::string encode_frame(const FrameKind& kind, std::uint8_t type, const std::string& payload);

struct Frame {
  std::uint8_t type = 0;
  std::string_view payload;
};

/// Encodes a message as a frame, whose type is the index of the message in the alternatives of `Message`, from 1.
/// `head` precedes the message.
template <class Message, class... Head>
std::string encode_message(const FrameKind& kind, const Message& message, const Head&... head) {
  Writer writer(kind.limits);
  writer(head...);
  std::visit([&](const auto& held) { writer(held); }, message);
  return encode_frame(kind, static_cast<std::uint8_t>(message.index() + 1), writer.take());
}

/// Decodes the message of a frame. Throws FormatError for an unknown type, and unless the payload is exactly one such
/// message.
template <class Message, class... Head>
Message decode_message(const FrameKind& kind, const Frame& frame, Head&... head) {
  Reader reader(frame.payload, kind.limits);
  reader(head...);
  Message message = reader.take_alternative<Message>(static_cast<std::size_t>(frame.type) - 1);
  reader.end();
  return message;
}

/// Splits a stream of bytes, which arrive in portions of any size, into frames.
class FrameCutter {
 public:
  /// `preamble`: number of bytes that may precede the first frame (such as output of a login shell).
  explicit FrameCutter(const FrameKind& kind, std::size_t preamble = 0) : kind_(kind), preamble_(preamble) {}
  void append(std::string_view bytes);
  /// Returns the next complete frame, valid until the next call; nullopt if more bytes are needed. Throws FormatError
  /// for invalid data.
  std::optional<Frame> next();
  std::size_t held() const { return buffer_.size() - start_; }

 private:
  void skip_preamble();

  FrameKind kind_;
  std::size_t preamble_;
  std::string buffer_;
  std::size_t start_ = 0;
};

}  // namespace ergotune
