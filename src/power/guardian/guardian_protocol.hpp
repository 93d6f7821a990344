// The messages between a session and its guardian, and between the guardian and the process that restores.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>

#include "base/messages/message_stream.hpp"
#include "power/guardian/guardian.hpp"

namespace ergotune::guardian {

/// Guardian: it has opened the device, and the first setting may be changed.
struct Ready {};
/// Guardian: it cannot guard.
struct Refused {
  std::string message;
};
/// Session: it has ended; everything is to be put back.
struct Finish {};
/// Restoring process: it begins with this step of the journal.
struct At {
  std::uint64_t step = 0;
};

using Message = std::variant<Ready, Refused, Finish, At, RestoreReport>;

inline constexpr FrameKind kKind{"ERGG", 1};

std::string encode(const Message& message);
/// Throws FormatError when it is not exactly one message of that type.
Message decode(const Frame& frame, std::type_identity<Message> = {});

using Stream = MessageStream<Message>;

/// Sends it where the other end is still there; one that is gone needs no answer.
void answer(Stream& stream, const Message& message);

}  // namespace ergotune::guardian
