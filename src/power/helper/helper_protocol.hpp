// Messages between ergotuned and its clients: one frame (base/messages/frames.hpp) per packet of a SOCK_SEQPACKET
// socket.
//
// A payload begins with the connection's nonce and a sequence number. The daemon chooses a nonce per connection and
// sends it with its first message; a client counts its requests from 1. A message recorded on another connection (wrong
// nonce) or sent again (old number) is therefore rejected. The daemon runs as root and its clients do not: packets,
// strings and lists have much lower limits than in other protocols, and requests and answers have different magic
// numbers.
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

inline constexpr std::uint8_t kVersion = 5;
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
  std::string command;        ///< for the message to other clients
  std::uint32_t seconds = 0;  ///< requested duration of the lease; limited by the policy
  bool take_over = false;
};
struct SetRequest {
  std::string device;
  ControlQuantity quantity = ControlQuantity::core_clock_mhz;
  double value = 0;
};
/// Extends a lease. The answer has status failed, although the lease continues, if values that the client set have
/// changed.
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
  bool allowed = false;  ///< the policy permits its use by this client
  std::string holder;    ///< who has the lease, and what is set; empty: no client
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
  double seconds = 0;  ///< acquire and renew: remaining duration of the lease
};
using Answer = std::variant<Hello, DevicesAnswer, RangeAnswer, ClocksAnswer, DoneAnswer>;

std::string encode(std::uint64_t nonce, std::uint64_t sequence, const Request& request);
std::string encode(std::uint64_t nonce, std::uint64_t sequence, const Answer& answer);
/// Return nullopt for anything that encode() cannot produce: wrong magic number or version, unknown type, string or
/// list too long, numbers out of range (or NaN), bytes missing or left over.
std::optional<Request> decode_request(std::string_view bytes, Header& header);
std::optional<Answer> decode_answer(std::string_view bytes, Header& header);

}  // namespace ergotune::helper
