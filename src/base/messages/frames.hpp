// The one framing of all messages between processes of ergotune. A frame is: magic (4 bytes), version (1 byte), type (1
// byte), two zero bytes, payload length (4 bytes), payload (base/messages/serialise.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/messages/serialise.hpp"

namespace ergotune {

/// What all frames of a protocol have in common.
struct FrameKind {
  std::string_view magic;  ///< 4 bytes
  std::uint8_t version = 0;
  /// Bytes of the largest payload: a length beyond it is garbage, not a message.
  std::uint32_t largest = 1u << 30;
  SerialLimits limits = {};  ///< of what payloads hold
};

constexpr std::size_t kFrameHeader = 12;  ///< bytes of magic and header

/// The bytes of a frame. Throws FormatError when it would be too large.
std::string encode_frame(const FrameKind& kind, std::uint8_t type, const std::string& payload);

struct Frame {
  std::uint8_t type = 0;
  std::string_view payload;
};

/// A message as a frame: its type is its place among the alternatives of `Message`, from 1 on. `head` comes before it.
template <class Message, class... Head>
std::string encode_message(const FrameKind& kind, const Message& message, const Head&... head) {
  Writer writer(kind.limits);
  writer(head...);
  std::visit([&](const auto& held) { writer(held); }, message);
  return encode_frame(kind, static_cast<std::uint8_t>(message.index() + 1), writer.take());
}

/// The message of a frame. Throws FormatError for an unknown type and a payload that is not exactly one message of it.
template <class Message, class... Head>
Message decode_message(const FrameKind& kind, const Frame& frame, Head&... head) {
  Reader reader(frame.payload, kind.limits);
  reader(head...);
  Message message = reader.take_alternative<Message>(static_cast<std::size_t>(frame.type) - 1);
  reader.end();
  return message;
}

/// Cuts a stream of bytes that arrive in any portions into frames.
class FrameCutter {
 public:
  /// `preamble`: so many bytes that are no frame may come before the first one (what a login shell prints).
  explicit FrameCutter(const FrameKind& kind, std::size_t preamble = 0) : kind_(kind), preamble_(preamble) {}
  void append(std::string_view bytes);
  /// The next whole frame, valid until the next call, or nullopt while more bytes are needed. Throws FormatError on
  /// garbage.
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
