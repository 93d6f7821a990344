#include "power/helper/helper_protocol.hpp"

#include "base/serialise.hpp"

namespace ergotune {

static constexpr ControlQuantity last_value(ControlQuantity) { return ControlQuantity::power_limit_w; }
static constexpr ControlStatus last_value(ControlStatus) { return ControlStatus::failed; }
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
  auto& [id, key, allowed] = device;
  return std::tie(id, key, allowed);
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
/// What a list of devices may have, so that it stays below kMaxMessage.
constexpr SerialLimits kDevicesLimits{128, 60, true};

// A message's type is that of its variant's first alternative, and then as they follow.
template <class Message>
std::string encode_message(Type first, std::uint64_t nonce, std::uint64_t sequence, const Message& message,
                           SerialLimits limits) {
  Writer writer(limits);
  writer(kMagic, kVersion, static_cast<std::uint16_t>(static_cast<std::size_t>(first) + message.index()), nonce,
         sequence);
  std::visit([&](const auto& held) { writer(held); }, message);
  return writer.take();
}

template <class Message>
std::optional<Message> decode_message(Type first, std::string_view bytes, Header& header) {
  if (bytes.size() > kMaxMessage) return std::nullopt;
  try {
    Reader reader(bytes, kLimits);
    const bool ours = reader.take<std::uint32_t>() == kMagic && reader.take<std::uint16_t>() == kVersion;
    header.type = static_cast<Type>(reader.take<std::uint16_t>());
    reader(header.nonce, header.sequence);
    if (!ours) return std::nullopt;
    // A type below the first becomes a position far beyond the last.
    Message message = reader.template take_alternative<Message>(static_cast<std::size_t>(header.type) -
                                                                static_cast<std::size_t>(first));
    reader.end();
    return message;
  } catch (const FormatError&) {
    return std::nullopt;
  }
}

}  // namespace

std::string encode(std::uint64_t nonce, std::uint64_t sequence, const Request& request) {
  return encode_message(Type::list, nonce, sequence, request, kLimits);
}

std::string encode(std::uint64_t nonce, std::uint64_t sequence, const Answer& answer) {
  return encode_message(Type::hello, nonce, sequence, answer,
                        std::holds_alternative<DevicesAnswer>(answer) ? kDevicesLimits : kLimits);
}

std::optional<Request> decode_request(std::string_view bytes, Header& header) {
  return decode_message<Request>(Type::list, bytes, header);
}

std::optional<Answer> decode_answer(std::string_view bytes, Header& header) {
  return decode_message<Answer>(Type::hello, bytes, header);
}

}  // namespace helper
}  // namespace ergotune
