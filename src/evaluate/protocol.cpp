#include "evaluate/protocol.hpp"

#include <fmt/format.h>

#include <map>

#include "evaluate/wire.hpp"

namespace ergotune::protocol {
namespace {

constexpr char kMagic[] = {'E', 'R', 'G', 'W'};
constexpr std::size_t kHeader = 12;

// ---- parts
// ----------------------------------------------------------------------------------------------------------

void put(Writer& w, const Value& value) {
  w.number(static_cast<std::uint8_t>(value.data().index()));
  if (value.is_bool())
    w.number(value.truthy());
  else if (value.is_integer())
    w.number(value.as_integer());
  else if (value.is_real())
    w.number(value.as_real());
  else
    w.text(value.as_string());
}
Value get_value(Reader& r) {
  switch (r.number<std::uint8_t>()) {
    case 0:
      return Value(r.number<bool>());
    case 1:
      return Value(r.number<std::int64_t>());
    case 2:
      return Value(r.number<double>());
    case 3:
      return Value(r.text());
    default:
      throw ProtocolError("a value of unknown kind");
  }
}

void put(Writer& w, const Configuration& configuration) {
  w.list(configuration, [&](const Value& value) { put(w, value); });
}
Configuration get_configuration(Reader& r) {
  Configuration configuration;
  r.list(2, [&] { configuration.push_back(get_value(r)); });
  return configuration;
}

void put(Writer& w, const std::vector<std::string>& texts) {
  w.list(texts, [&](const std::string& text) { w.text(text); });
}
std::vector<std::string> get_texts(Reader& r) {
  std::vector<std::string> texts;
  r.list(8, [&] { texts.push_back(r.text()); });
  return texts;
}

void put(Writer& w, const Binary& binary) {
  w.text(binary.bytes);
  w.text(binary.entry);
  w.text(binary.log);
}
Binary get_binary(Reader& r) {
  Binary binary;
  binary.bytes = r.text();
  binary.entry = r.text();
  binary.log = r.text();
  return binary;
}

void put(Writer& w, const DeviceInfo& info) {
  for (const std::string* text :
       {&info.id, &info.name, &info.backend, &info.uuid, &info.pci_address, &info.driver_version}) {
    w.text(*text);
  }
  w.number(info.is_cpu);
  w.list(info.properties, [&](const auto& property) {
    w.text(property.first);
    put(w, property.second);
  });
}
DeviceInfo get_device(Reader& r) {
  DeviceInfo info;
  for (std::string* text :
       {&info.id, &info.name, &info.backend, &info.uuid, &info.pci_address, &info.driver_version}) {
    *text = r.text();
  }
  info.is_cpu = r.number<bool>();
  r.list(10, [&] {
    std::string name = r.text();
    info.properties[std::move(name)] = get_value(r);
  });
  return info;
}

void put(Writer& w, const MeasureOptions& options) {
  w.number(options.precision);
  w.number(static_cast<std::int32_t>(options.warm_up));
  w.number(static_cast<std::int32_t>(options.min_repeats));
  w.number(static_cast<std::int32_t>(options.max_repeats));
  w.number(options.max_seconds);
  w.number(options.min_sample_seconds);
  w.number(options.cold_cache);
  w.number(options.verify);
  w.number(options.stream_seconds_limit);
  w.number(options.reference_seconds);
  w.text(options.reference_file.string());
}
MeasureOptions get_measure_options(Reader& r) {
  MeasureOptions options;
  options.precision = r.number<double>();
  options.warm_up = r.number<std::int32_t>();
  options.min_repeats = r.number<std::int32_t>();
  options.max_repeats = r.number<std::int32_t>();
  options.max_seconds = r.number<double>();
  options.min_sample_seconds = r.number<double>();
  options.cold_cache = r.number<bool>();
  options.verify = r.number<bool>();
  options.stream_seconds_limit = r.number<double>();
  options.reference_seconds = r.number<double>();
  options.reference_file = r.text();
  return options;
}

void put(Writer& w, const Quantity& quantity) {
  w.number(quantity.value);
  w.number(quantity.standard_error);
  w.number(quantity.n);
  w.text(quantity.method);
  w.text(quantity.sensor);
  w.number(static_cast<std::uint8_t>(quantity.provenance));
}
Quantity get_quantity(Reader& r) {
  Quantity quantity;
  quantity.value = r.number<double>();
  quantity.standard_error = r.number<double>();
  quantity.n = r.number<std::int64_t>();
  quantity.method = r.text();
  quantity.sensor = r.text();
  const auto provenance = r.number<std::uint8_t>();
  if (provenance > static_cast<std::uint8_t>(Provenance::modelled))
    throw ProtocolError("an unknown provenance");
  quantity.provenance = static_cast<Provenance>(provenance);
  return quantity;
}

void put(Writer& w, const std::map<std::string, double>& numbers) {
  w.list(numbers, [&](const auto& entry) {
    w.text(entry.first);
    w.number(entry.second);
  });
}
std::map<std::string, double> get_numbers(Reader& r) {
  std::map<std::string, double> numbers;
  r.list(16, [&] {
    std::string name = r.text();
    numbers[std::move(name)] = r.number<double>();
  });
  return numbers;
}

void put(Writer& w, Status status) { w.number(static_cast<std::uint8_t>(status)); }
Status get_status(Reader& r) {
  const auto status = r.number<std::uint8_t>();
  if (status > static_cast<std::uint8_t>(Status::unsupported)) throw ProtocolError("an unknown status");
  return static_cast<Status>(status);
}

void put(Writer& w, const Measurement& m) {
  put(w, m.status);
  w.text(m.message);
  w.list(m.quantities, [&](const auto& entry) {
    w.text(entry.first);
    put(w, entry.second);
  });
  put(w, m.metrics);
  put(w, m.metric_errors);
  put(w, m.warnings);
  w.list(m.times, [&](double time) { w.number(time); });
  for (const double seconds :
       {m.compile_seconds, m.verify_seconds, m.measure_seconds, m.tuner_seconds, m.finished_at}) {
    w.number(seconds);
  }
}
Measurement get_measurement(Reader& r) {
  Measurement m;
  m.status = get_status(r);
  m.message = r.text();
  r.list(16, [&] {
    std::string name = r.text();
    m.quantities[std::move(name)] = get_quantity(r);
  });
  m.metrics = get_numbers(r);
  m.metric_errors = get_numbers(r);
  m.warnings = get_texts(r);
  r.list(8, [&] { m.times.push_back(r.number<double>()); });
  for (double* seconds :
       {&m.compile_seconds, &m.verify_seconds, &m.measure_seconds, &m.tuner_seconds, &m.finished_at}) {
    *seconds = r.number<double>();
  }
  return m;
}

// ---- messages
// -------------------------------------------------------------------------------------------------------

void put(Writer& w, const Setup& m) {
  w.number(static_cast<std::uint8_t>(m.role));
  w.text(m.problem);
  w.text(m.device_id);
  put(w, m.device);
  w.text(m.cache_folder);
  put(w, m.measure);
  w.number(m.energy);
  w.number(m.energy_seconds);
  put(w, m.sensors);
  w.number(m.memory_limit);
}
void get(Reader& r, Setup& m) {
  const auto role = r.number<std::uint8_t>();
  if (role != 1 && role != 2) throw ProtocolError("a worker of unknown role");
  m.role = static_cast<Role>(role);
  m.problem = r.text();
  m.device_id = r.text();
  m.device = get_device(r);
  m.cache_folder = r.text();
  m.measure = get_measure_options(r);
  m.energy = r.number<bool>();
  m.energy_seconds = r.number<double>();
  m.sensors = get_texts(r);
  m.memory_limit = r.number<std::uint64_t>();
}

void put(Writer& w, const Ready& m) {
  put(w, m.device);
  w.text(m.compiler);
  w.number(m.has_reference);
  put(w, m.notes);
}
void get(Reader& r, Ready& m) {
  m.device = get_device(r);
  m.compiler = r.text();
  m.has_reference = r.number<bool>();
  m.notes = get_texts(r);
}

void put(Writer& w, const Failed& m) {
  w.number(m.user_error);
  w.text(m.message);
}
void get(Reader& r, Failed& m) {
  m.user_error = r.number<bool>();
  m.message = r.text();
}

void put(Writer& w, const Compile& m) {
  w.number(m.id);
  put(w, m.configuration);
}
void get(Reader& r, Compile& m) {
  m.id = r.number<std::uint64_t>();
  m.configuration = get_configuration(r);
}

void put(Writer& w, const Compiled& m) {
  w.number(m.id);
  put(w, m.status);
  w.text(m.message);
  put(w, m.binary);
  w.number(m.seconds);
  w.number(m.from_cache);
}
void get(Reader& r, Compiled& m) {
  m.id = r.number<std::uint64_t>();
  m.status = get_status(r);
  m.message = r.text();
  m.binary = get_binary(r);
  m.seconds = r.number<double>();
  m.from_cache = r.number<bool>();
}

void put(Writer& w, const Run& m) {
  w.number(m.id);
  put(w, m.configuration);
  put(w, m.binary);
  w.number(m.options.give_up_above);
  w.text(m.options.objective_quantity);
  w.number(m.options.reference_only);
}
void get(Reader& r, Run& m) {
  m.id = r.number<std::uint64_t>();
  m.configuration = get_configuration(r);
  m.binary = get_binary(r);
  m.options.give_up_above = r.number<double>();
  m.options.objective_quantity = r.text();
  m.options.reference_only = r.number<bool>();
}

void put(Writer& w, const Ran& m) {
  w.number(m.id);
  put(w, m.measurement);
  w.number(m.healthy);
  w.number(m.has_reference);
  w.number(m.seconds);
}
void get(Reader& r, Ran& m) {
  m.id = r.number<std::uint64_t>();
  m.measurement = get_measurement(r);
  m.healthy = r.number<bool>();
  m.has_reference = r.number<bool>();
  m.seconds = r.number<double>();
}

void put(Writer&, const Stop&) {}
void get(Reader&, Stop&) {}

template <class T>
Message read_as(std::string_view payload) {
  Reader reader(payload);
  T message;
  get(reader, message);
  reader.end();
  return message;
}

}  // namespace

std::string encode(const Message& message) {
  std::string frame(kMagic, sizeof kMagic);
  Writer writer(frame);
  writer.number(kVersion);
  writer.number(static_cast<std::uint8_t>(message.index() + 1));
  writer.number(std::uint16_t{0});
  writer.number(std::uint32_t{0});
  std::visit([&](const auto& m) { put(writer, m); }, message);
  const std::size_t payload = frame.size() - kHeader;
  if (payload > kLargestPayload) {
    throw ProtocolError(
        fmt::format("a message of {:.1f} GB is too large for a worker", static_cast<double>(payload) / 1e9));
  }
  const auto length = static_cast<std::uint32_t>(payload);
  frame.replace(8, 4, reinterpret_cast<const char*>(&length), 4);
  return frame;
}

Message decode(std::uint8_t type, std::string_view payload) {
  switch (type) {
    case 1:
      return read_as<Setup>(payload);
    case 2:
      return read_as<Ready>(payload);
    case 3:
      return read_as<Failed>(payload);
    case 4:
      return read_as<Compile>(payload);
    case 5:
      return read_as<Compiled>(payload);
    case 6:
      return read_as<Run>(payload);
    case 7:
      return read_as<Ran>(payload);
    case 8:
      return read_as<Stop>(payload);
    default:
      throw ProtocolError(fmt::format("a message of unknown type {}", type));
  }
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
  const std::size_t known = std::min(held.size(), sizeof kMagic);
  if (held.substr(0, known) != std::string_view(kMagic, known))
    throw ProtocolError("bytes that are no message");
  if (held.size() < kHeader) return std::nullopt;
  Reader header(held.substr(sizeof kMagic, kHeader - sizeof kMagic));
  const auto version = header.number<std::uint8_t>();
  const auto type = header.number<std::uint8_t>();
  const auto reserved = header.number<std::uint16_t>();
  const auto length = header.number<std::uint32_t>();
  if (version != kVersion) {
    throw ProtocolError(fmt::format("protocol version {}, but this program speaks {}", version, kVersion));
  }
  if (reserved != 0 || length > kLargestPayload) throw ProtocolError("a damaged message header");
  if (held.size() < kHeader + length) return std::nullopt;
  Message message = decode(type, held.substr(kHeader, length));
  start_ += kHeader + length;
  if (start_ == buffer_.size()) {
    buffer_.clear();
    start_ = 0;
  }
  return message;
}

}  // namespace ergotune::protocol
