// ergotuned's protocol, from bytes to the device: packets of several clients, some with their nonce and
// sequence number made right so that the fuzzer gets behind the door. The device traps when a value outside
// the policy reaches it.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "helper/helper_service.hpp"

namespace {

using namespace ergotune;
using namespace ergotune::helper;

int leases = 0;

class GuardedControl final : public Control {
 public:
  std::string id() const override { return "tegra"; }
  std::string device_key() const override { return "/sys/gpu"; }
  ControlRange range(ControlQuantity quantity) override {
    ControlRange range;
    range.supported = true;
    range.low = 100;
    range.high = 2000;
    if (quantity == ControlQuantity::core_clock_mhz) range.values = {100, 400, 700, 1100, 1500, 2000};
    return range;
  }
  std::vector<double> core_clocks_at(double) override { return {400, 1500}; }
  bool permitted() override { return true; }
  std::vector<RestoreStep> snapshot() override { return {}; }
  std::string external_lock_sign() override { return {}; }
  ControlResult set(ControlQuantity quantity, double value) override {
    if (leases != 1) std::abort();
    if (quantity == ControlQuantity::memory_clock_mhz) std::abort();  // not in the policy
    if (value < 400 || value > 1100) std::abort();
    return {};
  }
  ControlResult restore(const RestoreStep&) override { return {}; }
  // Guarded elsewhere: no lock, journal and guardian process per input.
  bool has_remote_guardian() const override { return true; }
  ControlResult acquire(const std::string&, bool) override {
    if (++leases > 1) std::abort();
    return {};
  }
  ControlResult release() override {
    --leases;
    return {};
  }
};

const Policy& policy() {
  static const Policy parsed = parse_policy(
      "lease_seconds = 2\nchanges_per_second = 1000\nburst = 1000\n[[allow]]\nusers = [0, 1]\ndevices = [\"tegra\"]\n"
      "core_clock_mhz = [400, 1100]\npower_limit_w = [400, 1100]\n",
      "policy");
  return parsed;
}

void round_trip(std::string_view bytes) {
  Header header;
  if (const auto request = decode_request(bytes, header))
    if (encode(header.nonce, header.sequence, *request) != bytes) std::abort();
  if (const auto answer = decode_answer(bytes, header))
    if (decode_answer(encode(header.nonce, header.sequence, *answer), header)->index() != answer->index()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  round_trip(rest);
  {
    Service service(policy(),
                    {[] { return std::vector<std::string>{"tegra"}; },
                     [](const std::string&) { return std::make_unique<GuardedControl>(); },
                     [](std::unique_ptr<Control> control, const ControlSessionOptions& options) {
                       return ControlSession::open(std::move(control), options);
                     }},
                    [](const std::string&) {});
    std::uint64_t numbers[3], nonces[3], sequences[3] = {};
    for (int i = 0; i < 3; ++i) {  // the third user is not in the policy
      std::string hello;
      nonces[i] = 0x1000u + static_cast<unsigned>(i);
      numbers[i] = service.connect({10 + i, static_cast<uid_t>(i), {}}, nonces[i], hello);
    }
    double now = 0;
    while (rest.size() >= 3) {
      const auto control = static_cast<std::uint8_t>(rest[0]);
      const std::size_t bytes = std::min<std::size_t>(static_cast<std::uint8_t>(rest[1]), rest.size() - 2);
      std::string packet(rest.substr(2, bytes));
      rest.remove_prefix(2 + bytes);
      const auto who = control % 3;
      now += (control >> 4) * 0.1;
      const std::size_t head = kFrameHeader + 2 * sizeof(std::uint64_t);
      if ((control & 4) && packet.size() >= head) {
        const std::string made = encode(nonces[who], sequences[who] + 1, Request(ListRequest{}));
        const auto length = static_cast<std::uint32_t>(packet.size() - kFrameHeader);
        std::memcpy(packet.data(), made.data(), 5);              // magic and version
        std::memcpy(packet.data() + 6, made.data() + 6, 2);      // two zero bytes
        std::memcpy(packet.data() + 8, &length, sizeof length);  // of the payload
        std::memcpy(packet.data() + kFrameHeader, made.data() + kFrameHeader, head - kFrameHeader);  // nonce, sequence
      }
      const auto reply = service.handle(numbers[who], packet, now);
      if (!reply.empty()) {
        Header header;
        if (!decode_answer(reply, header) || header.nonce != nonces[who]) std::abort();
        sequences[who] = header.sequence;
      } else if (control & 8) {
        service.disconnect(numbers[who]);
      }
      service.expire(now);
    }
    for (const auto number : numbers) service.disconnect(number);
  }
  if (leases != 0) std::abort();
  return 0;
}
