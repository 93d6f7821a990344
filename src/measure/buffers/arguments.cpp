#include "measure/buffers/arguments.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <string_view>

#include "base/npy.hpp"
#include "ergotune/error.hpp"
#include "ergotune/random.hpp"
#include "problem/checks.hpp"
#include "problem/element_type.hpp"

namespace ergotune {
namespace {

/// Returns the offset of the elements in an .npy file; 0 for a file of raw elements. Changes the position of `in`.
std::size_t data_offset(std::ifstream& in, const std::filesystem::path& file, ElementType type, const std::string& what,
                        const SourcePlace& place) {
  if (file.extension() != ".npy") return 0;
  std::string beginning(64 * 1024, '\0');  // headers written by NumPy have 128 bytes
  in.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(in.gcount()));
  in.clear();
  const auto header = read_npy_header(beginning);
  if (!header)
    throw UserError(
        fmt::format("{}, which {}, is not a complete .npy file (numpy.save writes one)", file.string(), what), place);
  const std::string_view wanted = npy_type_of(to_string(type));
  // byte order does not matter for single bytes
  const bool same = !header->type.empty() && header->type.substr(1) == wanted.substr(1) && header->type[0] != '>';
  if (!same)
    throw UserError(fmt::format("{} has elements of NumPy's type {}, but what it {} is {} ({})", file.string(),
                                header->type, what, to_string(type), wanted),
                    place);
  if (header->fortran_order && header->shape.size() > 1)
    throw UserError(
        fmt::format("{}, which {}, is in Fortran's order; write numpy.ascontiguousarray(...)", file.string(), what),
        place);
  return header->data_offset;
}

}  // namespace

std::vector<std::byte> read_array_file(const std::filesystem::path& file, ElementType type, std::size_t bytes,
                                       const std::string& what, const SourcePlace& place) {
  std::ifstream in(file, std::ios::binary);
  if (!in)
    throw UserError(
        fmt::format("cannot read {}, which {} (paths in a problem file start at its folder)", file.string(), what),
        place);
  const std::size_t offset = data_offset(in, file, type, what, place);
  in.seekg(0, std::ios::end);
  const std::size_t size = static_cast<std::size_t>(in.tellg()) - offset;
  if (size != bytes)
    throw UserError(fmt::format("{} has {} bytes, but what it {} needs {}", file.string(), size, what, bytes), place);
  std::vector<std::byte> contents(bytes);
  in.seekg(static_cast<std::streamoff>(offset));
  in.read(reinterpret_cast<char*>(contents.data()), static_cast<std::streamsize>(bytes));
  return contents;
}

namespace {

template <class T>
T convert(double value) {
  if constexpr (std::is_same_v<T, Half>) {
    return Half{half_from(value)};
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
void fill_random(std::span<T> out, const Fill& fill, Random& random) {
  if constexpr (std::is_integral_v<T>) {
    // Integers are uniform in [low, high], limited to the range of the type.
    const double lowest = static_cast<double>(std::numeric_limits<T>::min());
    const double highest = static_cast<double>(std::numeric_limits<T>::max());
    const double low = std::ceil(std::clamp(fill.low, lowest, highest));
    const double high = std::floor(std::clamp(fill.high, lowest, highest));
    const double count = std::max(1.0, high - low + 1);
    const auto bound = count >= 1.8e19 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(count);
    for (T& x : out) {
      x = static_cast<T>(static_cast<std::uint64_t>(static_cast<std::int64_t>(low)) + random.below(bound));
    }
  } else {
    for (T& x : out) x = convert<T>(fill.low + (fill.high - fill.low) * random.uniform());
  }
}

}  // namespace

std::vector<std::byte> scalar_bytes(ElementType type, const Value& value, const SourcePlace& place) {
  if (value.is_string()) {
    throw UserError(fmt::format("a scalar argument must be a number, not '{}'", value.as_string()), place);
  }
  return with_type(type, [&]<class T>(T) {
    T converted{};
    if constexpr (std::is_integral_v<T>) {
      std::int64_t integer = 0;
      try {
        integer = value.as_integer();
      } catch (const Error&) {
        throw UserError(
            fmt::format("{} is not a whole number, but the argument is {}", value.to_string(), to_string(type)), place);
      }
      converted = static_cast<T>(integer);
      const bool negative_in_unsigned = std::is_unsigned_v<T> && integer < 0;
      if (static_cast<std::int64_t>(converted) != integer || negative_in_unsigned) {
        throw UserError(fmt::format("{} does not fit into {}", integer, to_string(type)), place);
      }
    } else {
      converted = convert<T>(value.as_real());
    }
    std::vector<std::byte> bytes(sizeof(T));
    std::memcpy(bytes.data(), &converted, sizeof(T));
    return bytes;
  });
}

std::vector<std::byte> scalar_bytes(const Argument& argument, const Scope& scope) {
  if (argument.fields.empty()) return scalar_bytes(argument.type, argument.value.evaluate(scope), argument.place);
  std::vector<std::byte> bytes;
  for (const Field& field : argument.fields) {
    const std::size_t size = size_of(field.type);
    bytes.resize((bytes.size() + size - 1) / size * size);
    const auto member = scalar_bytes(field.type, field.value.evaluate(scope), argument.place);
    bytes.insert(bytes.end(), member.begin(), member.end());
  }
  bytes.resize(size_of(argument.fields));
  return bytes;
}

std::size_t element_count(const Argument& argument, const Constants& constants) {
  const std::int64_t count = whole_count(argument.count.evaluate(constants),
                                         fmt::format("the count of argument \"{}\"", argument.name), argument.place);
  if (count < 1 || count > 10'000'000'000'000)
    throw UserError(fmt::format("argument \"{}\" has {} elements", argument.name, count), argument.place);
  return static_cast<std::size_t>(count);
}

std::vector<std::byte> initial_contents(const Argument& argument, std::size_t count, std::size_t position) {
  const Fill& fill = argument.fill;
  const std::size_t bytes = count * size_of(argument.type);
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (static_cast<double>(bytes) > memory)
    throw UserError(fmt::format("argument \"{}\" has {} elements, {:.1f} GiB; this machine has {:.1f} GiB of memory",
                                argument.name, count, static_cast<double>(bytes) / 0x1p30, memory / 0x1p30),
                    argument.place);
  if (fill.kind == Fill::Kind::file)
    return read_array_file(fill.file, argument.type, bytes, fmt::format("fills argument \"{}\"", argument.name),
                           argument.place);
  std::vector<std::byte> contents(bytes);
  if (fill.kind == Fill::Kind::data) {
    const std::size_t given = fill.foreign ? fill.foreign->bytes : fill.data ? fill.data->size() : 0;
    if (given != bytes) {
      throw UserError(
          fmt::format("the data of argument \"{}\" have {} bytes, but it needs {}", argument.name, given, bytes),
          argument.place);
    }
    if (fill.foreign)
      fill.foreign->read({reinterpret_cast<std::uint8_t*>(contents.data()), bytes}, 0);
    else
      std::memcpy(contents.data(), fill.data->data(), bytes);
    return contents;
  }
  with_type(argument.type, [&]<class T>(T) {
    std::span<T> out(reinterpret_cast<T*>(contents.data()), count);
    if (fill.kind == Fill::Kind::random) {
      Random random(fill.seed + 0x9e3779b97f4a7c15ull * static_cast<std::uint64_t>(position));
      fill_random(out, fill, random);
    } else if (fill.kind == Fill::Kind::range) {
      for (std::size_t i = 0; i < count; ++i) out[i] = convert<T>(fill.start + fill.step * static_cast<double>(i));
    } else {
      std::ranges::fill(out, convert<T>(fill.value));
    }
  });
  return contents;
}

}  // namespace ergotune
