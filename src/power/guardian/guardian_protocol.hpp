// Messages between a session and its guardian, and between the guardian and the process that restores.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>

#include "base/messages/message_stream.hpp"
#include "power/guardian/guardian.hpp"

namespace ergotune::guardian {

/// From the guardian: the device is open, and settings may be changed from now on.
struct Ready {};
/// From the guardian: it cannot guard, for the reason in `message`.
struct Refused {
  std::string message;
};
/// From the session: it has ended, and all settings must be restored.
struct Finish {};
/// From the restoring process: it begins with this step of the journal.
struct At {
  std::uint64_t step = 0;
};

using Message = std::variant<Ready, Refused, Finish, At, RestoreReport>;

inline constexpr FrameKind kKind{"ERGG", 1};

std::string encode(const Message& message);
/// Throws FormatError unless the frame contains exactly one valid message.
Message decode(const Frame& frame, std::type_identity<Message> = {});

using Stream = MessageStream<Message>;

/// Sends a message; does nothing if the other end has closed the stream.
void answer(Stream& stream, const Message& message);

}  // namespace ergotune::guardian
