#include "base/messages/frames.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace ergotune {
namespace {

struct Header {
  std::uint8_t version = 0, type = 0;
  std::uint16_t reserved = 0;
  std::uint32_t length = 0;
};
auto fields(Header& header) {
  auto& [version, type, reserved, length] = header;
  return std::tie(version, type, reserved, length);
}

}  // namespace

std::string encode_frame(const FrameKind& kind, std::uint8_t type, const std::string& payload) {
  if (payload.size() > kind.largest)
    throw FormatError(fmt::format("a message of {} bytes is too large: at most {} are sent to another process",
                                  payload.size(), kind.largest));
  Header header;
  header.version = kind.version;
  header.type = type;
  header.length = static_cast<std::uint32_t>(payload.size());
  return std::string(kind.magic) + Writer()(header).take() + payload;
}

void FrameCutter::append(std::string_view bytes) {
  // Moved to the front only if at least half of the buffer is consumed, which is linear on average.
  if (start_ > 0 && start_ >= buffer_.size() / 2) {
    buffer_.erase(0, start_);
    start_ = 0;
  }
  buffer_.append(bytes);
}

/// Skips to the first magic; keeps bytes that may be the beginning of one.
void FrameCutter::skip_preamble() {
  const std::size_t found = buffer_.find(kind_.magic, start_);
  std::size_t end = found;
  if (found == std::string::npos) {
    end = buffer_.size();
    for (std::size_t n = std::min(kind_.magic.size() - 1, held()); n > 0; --n) {
      if (!std::string_view(buffer_).ends_with(kind_.magic.substr(0, n))) continue;
      end -= n;
      break;
    }
  }
  if (end - start_ > preamble_) throw FormatError("bytes that are not a message");
  preamble_ = found == std::string::npos ? preamble_ - (end - start_) : 0;
  start_ = end;
}

std::optional<Frame> FrameCutter::next() {
  if (start_ == buffer_.size()) {
    buffer_.clear();
    start_ = 0;
  }
  if (preamble_ > 0) skip_preamble();
  const std::string_view held = std::string_view(buffer_).substr(start_);
  if (!kind_.magic.starts_with(held.substr(0, kind_.magic.size()))) throw FormatError("bytes that are not a message");
  if (held.size() < kFrameHeader) return std::nullopt;
  const auto header = Reader(held.substr(kind_.magic.size(), kFrameHeader - kind_.magic.size())).take<Header>();
  if (header.version != kind_.version)
    throw FormatError(fmt::format("protocol version {}, but this program speaks {}", header.version, kind_.version));
  if (header.reserved != 0 || header.length > kind_.largest) throw FormatError("a damaged message header");
  if (held.size() < kFrameHeader + header.length) return std::nullopt;
  start_ += kFrameHeader + header.length;
  return Frame{header.type, held.substr(kFrameHeader, header.length)};
}

}  // namespace ergotune
