#include "capture/messages.hpp"

namespace ergotune::capture {

std::string encode(const Message& message) {
  return encode_frame(kKind, 1, Writer(kKind.limits)(static_cast<const std::vector<std::string>&>(message)).take());
}

Message decode(const Frame& frame, std::type_identity<Message>) {
  Reader reader(frame.payload, kKind.limits);
  Message message;
  reader(static_cast<std::vector<std::string>&>(message));
  reader.end();
  if (frame.type != 1 || message.empty()) throw FormatError("bytes that are not a message");
  return message;
}

}  // namespace ergotune::capture
