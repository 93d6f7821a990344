#include "power/helper/helper_protocol.hpp"

#include "power/controls/control_backends.hpp"

namespace ergotune {

static auto fields(ControlRange& range) {
  auto& [supported, values, low, high, current, default_value, why_not] = range;
  return std::tie(supported, values, low, high, current, default_value, why_not);
}

namespace helper {

static auto fields(ListRequest&) { return std::tie(); }
static auto fields(RangeRequest& request) {
  auto& [device, quantity] = request;
  return std::tie(device, quantity);
}
static auto fields(CoreClocksRequest& request) {
  auto& [device, memory_clock_mhz] = request;
  return std::tie(device, memory_clock_mhz);
}
static auto fields(AcquireRequest& request) {
  auto& [device, command, seconds, take_over] = request;
  return std::tie(device, command, seconds, take_over);
}
static auto fields(SetRequest& request) {
  auto& [device, quantity, value] = request;
  return std::tie(device, quantity, value);
}
static auto fields(RenewRequest& request) { return std::tie(request.device); }
static auto fields(ReleaseRequest& request) { return std::tie(request.device); }

static auto fields(Hello&) { return std::tie(); }
static auto fields(Device& device) {
  auto& [id, key, allowed, holder] = device;
  return std::tie(id, key, allowed, holder);
}
static auto fields(DevicesAnswer& answer) { return std::tie(answer.devices); }
static auto fields(RangeAnswer& answer) { return std::tie(answer.range); }
static auto fields(ClocksAnswer& answer) { return std::tie(answer.values); }
static auto fields(DoneAnswer& answer) {
  auto& [status, message, seconds] = answer;
  return std::tie(status, message, seconds);
}

namespace {

constexpr SerialLimits kLimits{kMaxText, kMaxValues, true};
constexpr FrameKind kRequests{"ETHR", kVersion, kMaxMessage - kFrameHeader, kLimits};
constexpr FrameKind kAnswers{"ETHA", kVersion, kMaxMessage - kFrameHeader, kLimits};
/// Bounds chosen so that a list of devices stays below kMaxMessage.
constexpr FrameKind kDevices{"ETHA", kVersion, kMaxMessage - kFrameHeader, {128, 40, true}};

/// Decodes a packet that consists of exactly one frame.
template <class Message>
std::optional<Message> decode_packet(const FrameKind& kind, std::string_view bytes, Header& header) {
  try {
    FrameCutter cutter(kind);
    cutter.append(bytes);
    const auto frame = cutter.next();
    if (!frame || cutter.held() > 0) return std::nullopt;
    return decode_message<Message>(kind, *frame, header.nonce, header.sequence);
  } catch (const FormatError&) {
    return std::nullopt;
  }
}

}  // namespace

std::string encode(std::uint64_t nonce, std::uint64_t sequence, const Request& request) {
  return encode_message(kRequests, request, nonce, sequence);
}

std::string encode(std::uint64_t nonce, std::uint64_t sequence, const Answer& answer) {
  return encode_message(std::holds_alternative<DevicesAnswer>(answer) ? kDevices : kAnswers, answer, nonce, sequence);
}

std::optional<Request> decode_request(std::string_view bytes, Header& header) {
  return decode_packet<Request>(kRequests, bytes, header);
}

std::optional<Answer> decode_answer(std::string_view bytes, Header& header) {
  return decode_packet<Answer>(kAnswers, bytes, header);
}

}  // namespace helper
}  // namespace ergotune
