// The messages between ergotuned and its clients: one frame (base/messages/frames.hpp) per packet of a SOCK_SEQPACKET
// socket.
//
// A payload begins with the connection's nonce and a sequence number. The daemon chooses the nonce per connection and
// sends it with its first message; a client counts its requests from 1. So a message that was recorded on another
// connection (wrong nonce) or sent again (old number) is refused. The daemon is root and its clients are not: packets,
// texts and lists are bounded far below what other protocols take, and requests and answers have different magics.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/messages/frames.hpp"
#include "power/controls/control.hpp"

namespace ergotune::helper {

inline constexpr std::uint8_t kVersion = 4;
inline constexpr std::size_t kMaxMessage = 16384;
inline constexpr std::size_t kMaxText = 1024;
inline constexpr std::size_t kMaxValues = 1024;

struct Header {
  std::uint64_t nonce = 0, sequence = 0;
};

// Requests.
struct ListRequest {};
struct RangeRequest {
  std::string device;
  ControlQuantity quantity = ControlQuantity::core_clock_mhz;
};
struct CoreClocksRequest {
  std::string device;
  double memory_clock_mhz = 0;
};
struct AcquireRequest {
  std::string device;
  std::string command;        ///< for the message that another client gets
  std::uint32_t seconds = 0;  ///< time to live wished for; the policy's bound holds
  bool take_over = false;
};
struct SetRequest {
  std::string device;
  ControlQuantity quantity = ControlQuantity::core_clock_mhz;
  double value = 0;
};
/// Answered with failed, though the lease goes on, where what was set is not set any more.
struct RenewRequest {
  std::string device;
};
struct ReleaseRequest {
  std::string device;
};
using Request = std::variant<ListRequest, RangeRequest, CoreClocksRequest, AcquireRequest, SetRequest, RenewRequest,
                             ReleaseRequest>;

// Answers.
struct Hello {};  ///< its header carries the nonce
struct Device {
  std::string id, key;
  bool allowed = false;  ///< the policy lets this client use it
};
struct DevicesAnswer {
  std::vector<Device> devices;
};
struct RangeAnswer {
  ControlRange range;
};
struct ClocksAnswer {
  std::vector<double> values;
};
struct DoneAnswer {
  ControlStatus status = ControlStatus::ok;
  std::string message;
  double seconds = 0;  ///< acquire and renew: how long the lease lasts from now
};
using Answer = std::variant<Hello, DevicesAnswer, RangeAnswer, ClocksAnswer, DoneAnswer>;

std::string encode(std::uint64_t nonce, std::uint64_t sequence, const Request& request);
std::string encode(std::uint64_t nonce, std::uint64_t sequence, const Answer& answer);
/// nullopt for anything that encode() could not have made: wrong magic or version, unknown type, text or list
/// too long, numbers out of their range (not-a-number included), bytes missing or left over.
std::optional<Request> decode_request(std::string_view bytes, Header& header);
std::optional<Answer> decode_answer(std::string_view bytes, Header& header);

}  // namespace ergotune::helper
