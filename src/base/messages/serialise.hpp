// Serialises structs for messages between ergotune's processes, and for its own files. A struct lists its members in a
// function next to it or next to its protocol:
//
//   inline auto fields(Quantity& quantity) {
//     auto& [value, standard_error, n, method] = quantity;
//     return std::tie(value, standard_error, n, method);
//   }
//
// The structured binding must name all members, so that a new member that is missing here is a compile error. An
// enumeration declares its last enumerator: `constexpr Status last_value(Status) { return Status::unsupported; }`.
//
// Numbers are little-endian as in memory; booleans and enumerations have their own size; strings, lists and maps are a
// 4-byte count followed by their contents; optionals are a boolean followed by the value, if any; variants are the
// index of the alternative (1 byte) followed by its value. A reader trusts nothing: it checks all lengths before it
// allocates memory, and all enumerators and booleans.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "ergotune/error.hpp"

namespace ergotune {

/// Invalid bytes, or a value that is too large to be written.
class FormatError : public Error {
 public:
  using Error::Error;
};

/// Limits of a protocol. A writer truncates longer values, so that error messages always get through; a reader rejects
/// them.
struct SerialLimits {
  std::size_t text = std::numeric_limits<std::size_t>::max();  ///< bytes of a string
  std::size_t list = std::numeric_limits<std::size_t>::max();  ///< elements of a list or map
  bool finite = false;                                         ///< reject infinities and NaN
};

namespace serial {
template <class T>
concept Number = std::is_arithmetic_v<T>;
template <class T>
concept Enumeration = std::is_enum_v<T>;
template <class T>
concept Struct = requires(T& value) {
  fields(value);
};
}  // namespace serial

class Writer {
 public:
  explicit Writer(SerialLimits limits = {}) : limits_(limits) {}
  /// Appends the values in order. Throws FormatError for more than 2^32 - 1 elements.
  template <class... T>
  Writer& operator()(const T&... values) {
    (put(values), ...);
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

  template <serial::Number T>
  void put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <serial::Enumeration T>
  void put(T value) {
    put(static_cast<std::underlying_type_t<T>>(value));
  }
  void put(const std::string& text) { bytes_.append(text, 0, put_count(text.size(), limits_.text)); }
  void put(const std::filesystem::path& path) { put(path.string()); }
  template <class T>
  void put(const std::vector<T>& list) {
    const std::size_t count = put_count(list.size(), limits_.list);
    for (std::size_t i = 0; i < count; ++i) put(list[i]);
  }
  template <class Key, class T, class Order>
  void put(const std::map<Key, T, Order>& map) {
    std::size_t count = put_count(map.size(), limits_.list);
    for (auto entry = map.begin(); count > 0; ++entry, --count) (*this)(entry->first, entry->second);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class... T>
  void put(const std::variant<T...>& value) {
    put(static_cast<std::uint8_t>(value.index()));
    std::visit([this](const auto& held) { (*this)(held); }, value);
  }
  template <serial::Struct T>
  void put(const T& value) {
    // fields() only refers to the members and changes nothing.
    std::apply([this](const auto&... members) { (*this)(members...); }, fields(const_cast<T&>(value)));
  }
  std::size_t put_count(std::size_t size, std::size_t limit) {
    size = std::min(size, limit);
    if (size > std::numeric_limits<std::uint32_t>::max()) throw FormatError("a value that is too large to be written");
    put(static_cast<std::uint32_t>(size));
    return size;
  }

  SerialLimits limits_;
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes, SerialLimits limits = {}) : bytes_(bytes), limits_(limits) {}
  /// Reads values in the order in which they were written. Throws FormatError.
  template <class... T>
  Reader& operator()(T&... values) {
    (get(values), ...);
    return *this;
  }
  template <class T>
  T take() {
    T value{};
    get(value);
    return value;
  }
  /// Reads the alternative at `index` of a variant whose index was transferred separately.
  template <class Variant>
  Variant take_alternative(std::size_t index) {
    Variant value;
    const auto find = [&]<std::size_t... i>(std::index_sequence<i...>) {
      return ((i == index && (get(value.template emplace<i>()), true)) || ...);
    };
    if (!find(std::make_index_sequence<std::variant_size_v<Variant>>{})) throw FormatError("a kind that there is not");
    return value;
  }
  /// Throws FormatError if unread bytes remain.
  void end() const {
    if (!bytes_.empty()) throw FormatError("bytes left over at the end");
  }

 private:
  template <serial::Number T>
  void get(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      const auto byte = take<std::uint8_t>();
      if (byte > 1) throw FormatError("a boolean that is neither 0 nor 1");
      value = byte == 1;
    } else {
      std::memcpy(&value, next(sizeof value).data(), sizeof value);
      if constexpr (std::is_floating_point_v<T>) {
        if (limits_.finite && !std::isfinite(value)) throw FormatError("a number that is none");
      }
    }
  }
  template <serial::Enumeration T>
  void get(T& value) {
    using Under = std::underlying_type_t<T>;
    const auto number = static_cast<std::int64_t>(take<Under>());
    if (number < 0 || number > static_cast<std::int64_t>(last_value(T{})))
      throw FormatError("an enumerator that there is not");
    value = static_cast<T>(number);
  }
  void get(std::string& text) { text = next(take_count(limits_.text)); }
  void get(std::filesystem::path& path) { path = take<std::string>(); }
  template <class T>
  void get(std::vector<T>& list) {
    list.clear();
    for (std::size_t count = take_count(limits_.list); count > 0; --count) get(list.emplace_back());
  }
  template <class Key, class T, class Order>
  void get(std::map<Key, T, Order>& map) {
    map.clear();
    for (std::size_t count = take_count(limits_.list); count > 0; --count) {
      Key key = take<Key>();
      get(map[std::move(key)]);
    }
  }
  template <class T>
  void get(std::optional<T>& value) {
    value.reset();
    if (take<bool>()) get(value.emplace());
  }
  template <class... T>
  void get(std::variant<T...>& value) {
    value = take_alternative<std::variant<T...>>(take<std::uint8_t>());
  }
  template <serial::Struct T>
  void get(T& value) {
    std::apply([this](auto&... members) { (*this)(members...); }, fields(value));
  }

  std::string_view next(std::size_t size) {
    if (size > bytes_.size()) throw FormatError("bytes that end too early");
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  // An element takes at least one byte, which bounds the memory for a forged count.
  std::size_t take_count(std::size_t limit) {
    const auto count = take<std::uint32_t>();
    if (count > limit || count > bytes_.size()) throw FormatError("a text or list that is longer than its bytes");
    return count;
  }

  std::string_view bytes_;
  SerialLimits limits_;
};

}  // namespace ergotune
