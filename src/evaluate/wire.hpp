// Numbers, strings and lists as bytes, written and read with every length checked.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "evaluate/protocol.hpp"

namespace ergotune::protocol {

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void number(T value) {
    static_assert(std::endian::native == std::endian::little);
    if constexpr (std::is_same_v<T, bool>) {
      out_.push_back(value ? 1 : 0);
    } else {
      out_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  void text(std::string_view value) {
    number(static_cast<std::uint64_t>(value.size()));
    out_.append(value);
  }
  template <class List, class F>
  void list(const List& items, F&& each) {
    number(static_cast<std::uint32_t>(items.size()));
    for (const auto& item : items) each(item);
  }

 private:
  std::string& out_;
};

class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}

  template <class T>
  requires(std::is_arithmetic_v<T>) T number() {
    if constexpr (std::is_same_v<T, bool>) {
      const auto byte = number<std::uint8_t>();
      if (byte > 1) throw ProtocolError("a truth value that is neither 0 nor 1");
      return byte == 1;
    } else {
      T value;
      need(sizeof value);
      std::memcpy(&value, in_.data(), sizeof value);
      in_.remove_prefix(sizeof value);
      return value;
    }
  }
  /// An enumerator in [0, count).
  template <class E>
  E choice(unsigned count) {
    using Under = std::underlying_type_t<E>;
    const auto value = number<Under>();
    if (static_cast<std::uint64_t>(value) >= count) throw ProtocolError("an enumerator out of range");
    return static_cast<E>(value);
  }
  std::string text() {
    const auto size = number<std::uint64_t>();
    need(size);
    std::string value(in_.substr(0, size));
    in_.remove_prefix(size);
    return value;
  }
  /// Reads a list whose elements take at least `least` bytes each, so that a forged count reserves no memory.
  template <class F>
  void list(std::size_t least, F&& each) {
    const auto count = number<std::uint32_t>();
    if (count > in_.size() / least) throw ProtocolError("a list longer than its message");
    for (std::uint32_t i = 0; i < count; ++i) each();
  }
  void end() const {
    if (!in_.empty()) throw ProtocolError("bytes left over after a message");
  }

 private:
  void need(std::uint64_t bytes) const {
    if (bytes > in_.size()) throw ProtocolError("a message that ends too early");
  }
  std::string_view in_;
};

}  // namespace ergotune::protocol
