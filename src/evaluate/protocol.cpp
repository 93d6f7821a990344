#include "evaluate/protocol.hpp"

#include <fmt/format.h>

#include "kernel/compile_cache.hpp"

namespace ergotune {

static constexpr Status last_value(Status) { return Status::unsupported; }
static constexpr Provenance last_value(Provenance) { return Provenance::modelled; }

static auto fields(Value& value) {
  // Whatever a variant of these kinds holds is a value.
  return std::tie(const_cast<std::variant<bool, std::int64_t, double, std::string>&>(value.data()));
}
static auto fields(DeviceInfo& info) {
  auto& [id, name, backend, uuid, pci_address, driver_version, is_cpu, properties] = info;
  return std::tie(id, name, backend, uuid, pci_address, driver_version, is_cpu, properties);
}
static auto fields(MeasureSettings& settings) {
  auto& [precision, warm_up, min_repeats, max_repeats, max_seconds, cold_cache, verify, reference_seconds] = settings;
  return std::tie(precision, warm_up, min_repeats, max_repeats, max_seconds, cold_cache, verify, reference_seconds);
}
static auto fields(MeasureOptions& options) {
  // A structured binding cannot name a base's members beside its own: what MeasureOptions adds is told by hand.
  return std::tuple_cat(fields(static_cast<MeasureSettings&>(options)),
                        std::tie(options.min_sample_seconds, options.stream_seconds_limit, options.reference_file));
}
static auto fields(RunOptions& options) {
  auto& [give_up_above, objective_quantity, reference_only, resources_only, watched, asked_clock_mhz, clock_tolerance,
         set_at, look_only] = options;
  return std::tie(give_up_above, objective_quantity, reference_only, resources_only, watched, asked_clock_mhz,
                  clock_tolerance, set_at, look_only);
}
static auto fields(Quantity& quantity) {
  auto& [value, standard_error, n, method, sensor, provenance] = quantity;
  return std::tie(value, standard_error, n, method, sensor, provenance);
}
static auto fields(Measurement& measurement) {
  auto& [status, message, quantities, metrics, metric_errors, warnings, times, compile_seconds,
         verify_seconds, measure_seconds, tuner_seconds, finished_at] = measurement;
  return std::tie(status, message, quantities, metrics, metric_errors, warnings, times, compile_seconds,
                  verify_seconds, measure_seconds, tuner_seconds, finished_at);
}

namespace protocol {

static constexpr Role last_value(Role) { return Role::runner; }

static auto fields(Setup& setup) {
  auto& [role, problem, device_id, device, cache_folder, measure, energy, energy_seconds, sensors] = setup;
  return std::tie(role, problem, device_id, device, cache_folder, measure, energy, energy_seconds, sensors);
}
static auto fields(Ready& ready) {
  auto& [device, compiler, has_reference, notes] = ready;
  return std::tie(device, compiler, has_reference, notes);
}
static auto fields(Failed& failed) {
  auto& [user_error, message] = failed;
  return std::tie(user_error, message);
}
static auto fields(Compile& compile) {
  auto& [id, kernel, configuration] = compile;
  return std::tie(id, kernel, configuration);
}
static auto fields(Compiled& compiled) {
  auto& [id, status, message, binary, seconds, from_cache] = compiled;
  return std::tie(id, status, message, binary, seconds, from_cache);
}
static auto fields(Run& run) {
  auto& [id, configuration, binaries, options] = run;
  return std::tie(id, configuration, binaries, options);
}
static auto fields(Ran& ran) {
  auto& [id, measurement, healthy, has_reference, seconds] = ran;
  return std::tie(id, measurement, healthy, has_reference, seconds);
}
static auto fields(Stop&) { return std::tie(); }

namespace {

constexpr std::string_view kMagic = "ERGW";

struct Header {
  std::uint8_t version = kVersion, type = 0;
  std::uint16_t reserved = 0;
  std::uint32_t length = 0;
};
auto fields(Header& header) {
  auto& [version, type, reserved, length] = header;
  return std::tie(version, type, reserved, length);
}
constexpr std::size_t kHeader = 12;  ///< bytes of magic and header

}  // namespace

std::string encode(const Message& message) {
  Writer writer;
  std::visit([&](const auto& held) { writer(held); }, message);
  const std::string payload = writer.take();
  if (payload.size() > kLargestPayload) {
    throw ProtocolError(fmt::format("a message of {:.1f} GB is too large for a worker",
                                    static_cast<double>(payload.size()) / 1e9));
  }
  Header header;
  header.type = static_cast<std::uint8_t>(message.index() + 1);
  header.length = static_cast<std::uint32_t>(payload.size());
  return std::string(kMagic) + Writer()(header).take() + payload;
}

Message decode(std::uint8_t type, std::string_view payload) {
  Reader reader(payload);
  Message message = reader.take_alternative<Message>(static_cast<std::size_t>(type) - 1);
  reader.end();
  return message;
}

void FrameReader::append(std::string_view bytes) {
  // Moved to the front only when the consumed part dominates: amortised linear.
  if (start_ > 0 && start_ >= buffer_.size() / 2) {
    buffer_.erase(0, start_);
    start_ = 0;
  }
  buffer_.append(bytes);
}

std::optional<Message> FrameReader::next() {
  const std::string_view held = std::string_view(buffer_).substr(start_);
  if (!kMagic.starts_with(held.substr(0, kMagic.size()))) throw ProtocolError("bytes that are no message");
  if (held.size() < kHeader) return std::nullopt;
  const auto header = Reader(held.substr(kMagic.size(), kHeader - kMagic.size())).take<Header>();
  if (header.version != kVersion) {
    throw ProtocolError(
        fmt::format("protocol version {}, but this program speaks {}", header.version, kVersion));
  }
  if (header.reserved != 0 || header.length > kLargestPayload)
    throw ProtocolError("a damaged message header");
  if (held.size() < kHeader + header.length) return std::nullopt;
  Message message = decode(header.type, held.substr(kHeader, header.length));
  start_ += kHeader + header.length;
  if (start_ == buffer_.size()) {
    buffer_.clear();
    start_ = 0;
  }
  return message;
}

}  // namespace protocol
}  // namespace ergotune
