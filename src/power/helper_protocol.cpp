#include "power/helper_protocol.hpp"

#include <bit>
#include <cmath>
#include <cstring>

namespace ergotune::helper {
namespace {

static_assert(std::endian::native == std::endian::little, "messages are written as they lie in memory");

class Writer {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof value);
  }
  void text(const std::string& value) {
    const auto length = std::min(value.size(), kMaxText);
    number(static_cast<std::uint16_t>(length));
    bytes_.append(value, 0, length);
  }
  void quantity(ControlQuantity value) { number(static_cast<std::uint8_t>(value)); }
  void optional(const std::optional<double>& value) {
    number(static_cast<std::uint8_t>(value.has_value()));
    number(value.value_or(0));
  }
  void values(const std::vector<double>& list) {
    const auto count = std::min(list.size(), kMaxValues);
    number(static_cast<std::uint16_t>(count));
    for (std::size_t i = 0; i < count; ++i) number(list[i]);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Every read checks that the bytes are there; after the first failure everything reads as zero and ok() is
// false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  bool done() const { return ok_ && bytes_.empty(); }

  template <class T>
  T number() {
    T value{};
    if (!take(sizeof value)) return value;
    std::memcpy(&value, taken_.data(), sizeof value);
    return value;
  }
  double real() {
    const double value = number<double>();
    if (!std::isfinite(value)) ok_ = false;
    return ok_ ? value : 0;
  }
  bool flag() {
    const auto value = number<std::uint8_t>();
    if (value > 1) ok_ = false;
    return value == 1;
  }
  std::string text() {
    const auto length = number<std::uint16_t>();
    if (length > kMaxText || !take(length)) {
      ok_ = false;
      return {};
    }
    return std::string(taken_);
  }
  ControlQuantity quantity() {
    const auto value = number<std::uint8_t>();
    if (value > static_cast<std::uint8_t>(ControlQuantity::power_limit_w)) {
      ok_ = false;
      return ControlQuantity::core_clock_mhz;
    }
    return static_cast<ControlQuantity>(value);
  }
  ControlStatus status() {
    const auto value = number<std::uint8_t>();
    if (value > static_cast<std::uint8_t>(ControlStatus::failed)) ok_ = false;
    return ok_ ? static_cast<ControlStatus>(value) : ControlStatus::failed;
  }
  std::optional<double> optional() {
    const bool there = flag();
    const double value = real();
    return there ? std::optional(value) : std::nullopt;
  }
  std::vector<double> values() {
    const auto count = number<std::uint16_t>();
    if (count > kMaxValues) ok_ = false;
    std::vector<double> list;
    for (std::size_t i = 0; ok_ && i < count; ++i) list.push_back(real());
    return list;
  }

 private:
  bool take(std::size_t size) {
    if (!ok_ || bytes_.size() < size) {
      ok_ = false;
      return false;
    }
    taken_ = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return true;
  }
  std::string_view bytes_, taken_;
  bool ok_ = true;
};

Writer begin(Type type, std::uint64_t nonce, std::uint64_t sequence) {
  Writer writer;
  writer.number(kMagic);
  writer.number(kVersion);
  writer.number(static_cast<std::uint16_t>(type));
  writer.number(nonce);
  writer.number(sequence);
  return writer;
}

bool read_header(Reader& reader, Header& header) {
  const bool ours = reader.number<std::uint32_t>() == kMagic && reader.number<std::uint16_t>() == kVersion;
  header.type = static_cast<Type>(reader.number<std::uint16_t>());
  header.nonce = reader.number<std::uint64_t>();
  header.sequence = reader.number<std::uint64_t>();
  return ours && reader.ok();
}

// What each message is made of, for writing and reading alike side by side.
struct WriteRequest {
  std::uint64_t nonce, sequence;
  std::string operator()(const ListRequest&) const { return begin(Type::list, nonce, sequence).take(); }
  std::string operator()(const RangeRequest& m) const {
    auto w = begin(Type::range, nonce, sequence);
    w.text(m.device);
    w.quantity(m.quantity);
    return w.take();
  }
  std::string operator()(const CoreClocksRequest& m) const {
    auto w = begin(Type::core_clocks, nonce, sequence);
    w.text(m.device);
    w.number(m.memory_clock_mhz);
    return w.take();
  }
  std::string operator()(const AcquireRequest& m) const {
    auto w = begin(Type::acquire, nonce, sequence);
    w.text(m.device);
    w.text(m.command);
    w.number(m.seconds);
    w.number(static_cast<std::uint8_t>(m.take_over));
    return w.take();
  }
  std::string operator()(const SetRequest& m) const {
    auto w = begin(Type::set, nonce, sequence);
    w.text(m.device);
    w.quantity(m.quantity);
    w.number(m.value);
    return w.take();
  }
  std::string operator()(const RenewRequest& m) const {
    auto w = begin(Type::renew, nonce, sequence);
    w.text(m.device);
    return w.take();
  }
  std::string operator()(const ReleaseRequest& m) const {
    auto w = begin(Type::release, nonce, sequence);
    w.text(m.device);
    return w.take();
  }
};

struct WriteAnswer {
  std::uint64_t nonce, sequence;
  std::string operator()(const Hello&) const { return begin(Type::hello, nonce, sequence).take(); }
  std::string operator()(const DevicesAnswer& m) const {
    auto w = begin(Type::devices, nonce, sequence);
    const auto count = std::min<std::size_t>(m.devices.size(), 64);
    w.number(static_cast<std::uint16_t>(count));
    for (std::size_t i = 0; i < count; ++i) {
      w.text(m.devices[i].id.substr(0, 64));
      w.text(m.devices[i].key.substr(0, 128));
      w.number(static_cast<std::uint8_t>(m.devices[i].allowed));
    }
    return w.take();
  }
  std::string operator()(const RangeAnswer& m) const {
    auto w = begin(Type::range_is, nonce, sequence);
    w.number(static_cast<std::uint8_t>(m.range.supported));
    w.number(m.range.low);
    w.number(m.range.high);
    w.optional(m.range.current);
    w.optional(m.range.default_value);
    w.values(m.range.values);
    return w.take();
  }
  std::string operator()(const ClocksAnswer& m) const {
    auto w = begin(Type::clocks_are, nonce, sequence);
    w.values(m.values);
    return w.take();
  }
  std::string operator()(const DoneAnswer& m) const {
    auto w = begin(Type::done, nonce, sequence);
    w.number(static_cast<std::uint8_t>(m.status));
    w.text(m.message);
    w.number(m.seconds);
    return w.take();
  }
};

}  // namespace

std::string encode(std::uint64_t nonce, std::uint64_t sequence, const Request& request) {
  return std::visit(WriteRequest{nonce, sequence}, request);
}

std::string encode(std::uint64_t nonce, std::uint64_t sequence, const Answer& answer) {
  return std::visit(WriteAnswer{nonce, sequence}, answer);
}

// Braced initialisers are evaluated from left to right, so fields are read in their order.
std::optional<Request> decode_request(std::string_view bytes, Header& header) {
  if (bytes.size() > kMaxMessage) return std::nullopt;
  Reader r(bytes);
  if (!read_header(r, header)) return std::nullopt;
  Request request;
  switch (header.type) {
    case Type::list:
      request = ListRequest{};
      break;
    case Type::range:
      request = RangeRequest{r.text(), r.quantity()};
      break;
    case Type::core_clocks:
      request = CoreClocksRequest{r.text(), r.real()};
      break;
    case Type::acquire:
      request = AcquireRequest{r.text(), r.text(), r.number<std::uint32_t>(), r.flag()};
      break;
    case Type::set:
      request = SetRequest{r.text(), r.quantity(), r.real()};
      break;
    case Type::renew:
      request = RenewRequest{r.text()};
      break;
    case Type::release:
      request = ReleaseRequest{r.text()};
      break;
    default:
      return std::nullopt;
  }
  if (!r.done()) return std::nullopt;
  return request;
}

std::optional<Answer> decode_answer(std::string_view bytes, Header& header) {
  if (bytes.size() > kMaxMessage) return std::nullopt;
  Reader r(bytes);
  if (!read_header(r, header)) return std::nullopt;
  Answer answer;
  switch (header.type) {
    case Type::hello:
      answer = Hello{};
      break;
    case Type::devices: {
      DevicesAnswer list;
      const auto count = r.number<std::uint16_t>();
      for (std::size_t i = 0; r.ok() && i < count; ++i)
        list.devices.push_back({r.text(), r.text(), r.flag()});
      answer = std::move(list);
      break;
    }
    case Type::range_is: {
      ControlRange range;
      range.supported = r.flag();
      range.low = r.real();
      range.high = r.real();
      range.current = r.optional();
      range.default_value = r.optional();
      range.values = r.values();
      answer = RangeAnswer{std::move(range)};
      break;
    }
    case Type::clocks_are:
      answer = ClocksAnswer{r.values()};
      break;
    case Type::done:
      answer = DoneAnswer{r.status(), r.text(), r.real()};
      break;
    default:
      return std::nullopt;
  }
  if (!r.done()) return std::nullopt;
  return answer;
}

}  // namespace ergotune::helper
