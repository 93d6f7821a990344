#include "power/guardian/guardian_protocol.hpp"

#include "power/controls/control_backends.hpp"

namespace ergotune {

static auto fields(RestoreStep& step) {
  auto& [kind, target, value, quantity] = step;
  return std::tie(kind, target, value, quantity);
}
static auto fields(ControlResult& result) {
  auto& [status, message] = result;
  return std::tie(status, message);
}
static auto fields(RestoreOutcome& outcome) {
  auto& [step, result, words] = outcome;
  return std::tie(step, result, words);
}
static auto fields(RestoreReport& report) {
  auto& [device, outcomes, complete, summary] = report;
  return std::tie(device, outcomes, complete, summary);
}

namespace guardian {

static auto fields(Ready&) { return std::tie(); }
static auto fields(Refused& refused) { return std::tie(refused.message); }
static auto fields(Finish&) { return std::tie(); }
static auto fields(At& at) { return std::tie(at.step); }

std::string encode(const Message& message) { return encode_message(kKind, message); }

Message decode(const Frame& frame, std::type_identity<Message>) { return decode_message<Message>(kKind, frame); }

void answer(Stream& stream, const Message& message) {
  try {
    stream.send(message);
  } catch (const Disconnected&) {
  }
}

}  // namespace guardian
}  // namespace ergotune
