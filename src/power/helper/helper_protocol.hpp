// What ergotuned and its clients say to each other: small typed messages, one per packet of a SOCK_SEQPACKET
// socket.
//
// Every message: magic, version, type, the connection's nonce, a sequence number, then its fields. The daemon
// chooses the nonce per connection and says it in its first message; a client counts its requests from 1. So
// a message that was recorded on another connection (wrong nonce) or sent again (old number) is refused.
// The fields are written by base/serialise.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "power/controls/control.hpp"

namespace ergotune::helper {

inline constexpr std::uint32_t kMagic = 0x47525445;  // "ETRG"
inline constexpr std::uint16_t kVersion = 3;
inline constexpr std::size_t kMaxMessage = 16384;
inline constexpr std::size_t kMaxText = 1024;
inline constexpr std::size_t kMaxValues = 1024;

/// In the order of the variants Request and Answer.
enum class Type : std::uint16_t {
  list = 1,
  range,
  core_clocks,
  acquire,
  set,
  renew,
  release,
  hello = 100,
  devices,
  range_is,
  clocks_are,
  done,
};

struct Header {
  Type type = Type::list;
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
