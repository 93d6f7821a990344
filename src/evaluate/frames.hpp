// Frames: how messages lie in a stream of bytes. A frame is: magic (4 bytes), version (1 byte), type (1 byte), two zero
// bytes, payload length (4 bytes), payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/serialise.hpp"

namespace ergotune {

/// What a protocol's frames begin with.
struct FrameKind {
  std::string_view magic;  ///< 4 bytes
  std::uint8_t version = 0;
};

constexpr std::size_t kFrameHeader = 12;  ///< bytes of magic and header
/// No frame is larger: a length beyond it is garbage, not a message.
constexpr std::uint32_t kLargestPayload = 1u << 30;

/// The bytes of a frame. Throws FormatError when it would be too large.
std::string frame(const FrameKind& kind, std::uint8_t type, const std::string& payload);

/// A message as a frame: its type is its place among the alternatives of `Message`, from 1 on.
template <class Message>
std::string encode_message(const FrameKind& kind, const Message& message) {
  Writer writer;
  std::visit([&](const auto& held) { writer(held); }, message);
  return frame(kind, static_cast<std::uint8_t>(message.index() + 1), writer.take());
}

/// The message of a frame. Throws FormatError for a type that there is not and a payload that is none of it.
template <class Message>
Message decode_message(std::uint8_t type, std::string_view payload) {
  Reader reader(payload);
  Message message = reader.take_alternative<Message>(static_cast<std::size_t>(type) - 1);
  reader.end();
  return message;
}

/// Cuts a stream of bytes that arrive in any portions into frames.
class FrameCutter {
 public:
  struct Frame {
    std::uint8_t type = 0;
    std::string_view payload;  ///< until the next call
  };

  /// `preamble`: so many bytes that are no frame may come before the first one (what a login shell prints).
  explicit FrameCutter(FrameKind kind, std::size_t preamble = 0) : kind_(kind), preamble_(preamble) {}
  void append(std::string_view bytes);
  /// The next whole frame, or nullopt while more bytes are needed. Throws FormatError on garbage.
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
