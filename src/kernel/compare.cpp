#include "kernel/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <future>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/process/environment.hpp"
#include "ergotune/problem.hpp"
#include "problem/element_type.hpp"

namespace ergotune {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Tolerance {
  double absolute, relative, floor;
};

template <class T>
T element(std::span<const std::byte> data, std::size_t i) {
  T value;
  std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
  return value;
}

/// Calls `f` with a value of the type in which elements are stored, and the conversion of such a value to a number.
template <class F>
auto with_elements(ElementType type, F f) {
  return with_type(type, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, Half>)
      return f(std::uint16_t{}, half_to_double);
    else
      return f(T{}, [](T x) { return static_cast<double>(x); });
  });
}

/// Returns the largest relative error in one block.
template <class T, class Load>
double error_of_block(std::span<const std::byte> actual, std::span<const std::byte> expected, std::size_t from,
                      std::size_t to, const Tolerance& tolerance, Load load) {
  double worst = 0;
  for (std::size_t i = from; i < to; ++i) {
    const double a = load(element<T>(actual, i)), e = load(element<T>(expected, i));
    const double relative = std::abs(a - e) / std::max(std::abs(e), tolerance.floor);
    worst = a != e && relative > worst ? relative : worst;
  }
  return worst;
}

/// Compares one block of elements without branches, so that the compiler can vectorise it. Returns how many differ.
/// Divides only if that may increase the error, which is rare.
template <class T, class Load>
std::size_t compare_block(std::span<const std::byte> actual, std::span<const std::byte> expected, std::size_t from,
                          std::size_t to, const Tolerance& tolerance, double& error, Load load) {
  std::uint64_t different = 0, worse = 0;
  for (std::size_t i = from; i < to; ++i) {
    const double a = load(element<T>(actual, i)), e = load(element<T>(expected, i));
    const double distance = std::abs(a - e), size = std::abs(e);
    // Equal infinities give distance NaN, as do two NaNs: both count as equal; written such that NaN fails the test.
    // Single & and | avoid branches.
    const bool same = (a == e) | ((a != a) & (e != e));
    const bool near = (distance <= tolerance.absolute + tolerance.relative * size) & (distance < kInfinity);
    different += static_cast<std::uint64_t>(!(same | near));
    worse += static_cast<std::uint64_t>(!same & (distance > error * (size > tolerance.floor ? size : tolerance.floor)));
  }
  if (worse > 0) error = std::max(error, error_of_block<T>(actual, expected, from, to, tolerance, load));
  return different;
}

/// Returns true if a block of single precision numbers certainly contains no difference, and no error that is larger by
/// more than a thousandth, computed in single precision with a margin for rounding. True for most blocks, in a third of
/// the time.
bool nothing_new(std::span<const std::byte> actual, std::span<const std::byte> expected, std::size_t from,
                 std::size_t to, const Tolerance& tolerance, double error) {
  constexpr double kRoom = 0.999;
  const auto absolute = static_cast<float>(kRoom * tolerance.absolute);
  const auto relative = static_cast<float>(kRoom * tolerance.relative);
  const auto floor = static_cast<float>(tolerance.floor);
  const auto worst = static_cast<float>(error / kRoom);
  constexpr float kMost = std::numeric_limits<float>::infinity();
  std::uint32_t open = 0;
  for (std::size_t i = from; i < to; ++i) {
    const float a = element<float>(actual, i), e = element<float>(expected, i);
    const float distance = std::abs(a - e), size = std::abs(e);
    // NaN fails both tests.
    open += static_cast<std::uint32_t>(!((distance <= absolute + relative * size) &
                                         (distance <= worst * (size > floor ? size : floor)) & (distance < kMost)));
  }
  return open == 0;
}

constexpr std::size_t kBlock = 4096;

/// Converts a block of FP16 numbers to FP32, which is exact but for infinities, which become NaN. Without branches, as
/// above.
std::span<const std::byte> widened(std::span<const std::byte> halves, std::size_t from, std::size_t to,
                                   std::array<float, kBlock>& out) {
  for (std::size_t i = from; i < to; ++i) {
    const std::uint32_t bits = element<std::uint16_t>(halves, i), magnitude = bits & 0x7fffu;
    const auto subnormal = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<int>(magnitude)) * 0x1p-24f);
    const std::uint32_t normal = (magnitude << 13) + ((127u - 15u) << 23);  // the difference of the exponents' biases
    const std::uint32_t is_subnormal = 0u - static_cast<std::uint32_t>(magnitude < 0x400u);  // all bits or none
    const std::uint32_t is_infinite = 0u - static_cast<std::uint32_t>(magnitude >= 0x7c00u);
    const std::uint32_t number = (is_subnormal & subnormal) | (~is_subnormal & normal) | (is_infinite & 0x7fc00000u);
    out[i - from] = std::bit_cast<float>((bits & 0x8000u) << 16 | number);
  }
  return std::as_bytes(std::span(out));
}

/// Compares the elements [first, last) block by block; without a message.
template <class T, class Load>
BufferComparison compare_part(std::span<const std::byte> actual, std::span<const std::byte> expected, std::size_t first,
                              std::size_t last, const Tolerance& tolerance, Load load) {
  BufferComparison result;
  std::array<float, kBlock> ours, theirs;
  for (std::size_t from = first; from < last; from += kBlock) {
    const std::size_t to = std::min(last, from + kBlock);
    if (std::memcmp(&actual[from * sizeof(T)], &expected[from * sizeof(T)], (to - from) * sizeof(T)) == 0) continue;
    if constexpr (std::is_same_v<T, float>) {
      if (nothing_new(actual, expected, from, to, tolerance, result.error)) continue;
    }
    if constexpr (std::is_same_v<Load, double (*)(std::uint16_t)>) {
      if (nothing_new(widened(actual, from, to, ours), widened(expected, from, to, theirs), 0, to - from, tolerance,
                      result.error))
        continue;
    }
    const std::size_t different = compare_block<T>(actual, expected, from, to, tolerance, result.error, load);
    if (different > 0 && result.different == 0) {
      for (std::size_t i = from; i < to; ++i) {
        double ignored = 0;
        if (compare_block<T>(actual, expected, i, i + 1, tolerance, ignored, load) > 0) {
          result.first_different = i;
          break;
        }
      }
    }
    result.different += different;
  }
  return result;
}

/// Compares large outputs in several threads: a device waits for it.
template <class T, class Load>
BufferComparison compare_elements(std::span<const std::byte> actual, std::span<const std::byte> expected,
                                  const Tolerance& tolerance, Load load) {
  constexpr std::size_t kPart = kBlock << 10, kMostThreads = 8;
  const std::size_t count = expected.size() / sizeof(T);
  const std::size_t threads =
      std::clamp<std::size_t>(count / kPart, 1, std::min<std::size_t>(kMostThreads, usable_processors()));
  const std::size_t each = (count / threads + kBlock - 1) / kBlock * kBlock;
  const auto part = [&](std::size_t number) {
    const std::size_t first = std::min(count, number * each);
    const std::size_t last = number + 1 == threads ? count : std::min(count, first + each);
    return compare_part<T>(actual, expected, first, last, tolerance, load);
  };
  std::vector<std::future<BufferComparison>> others;
  for (std::size_t i = 1; i < threads; ++i) others.push_back(std::async(std::launch::async, part, i));
  BufferComparison result = part(0);
  for (auto& other : others) {
    const BufferComparison found = other.get();
    if (result.different == 0) result.first_different = found.first_different;
    result.different += found.different;
    result.error = std::max(result.error, found.error);
  }
  result.equal = result.different == 0;
  if (!result.equal) {
    const std::size_t i = result.first_different;
    const double a = load(element<T>(actual, i)), e = load(element<T>(expected, i));
    if (!std::isfinite(a) || !std::isfinite(e)) result.error = kInfinity;
    result.message = fmt::format("{} of {} elements differ, the first at {}: {:.9g} instead of {:.9g}",
                                 result.different, count, i, a, e);
  }
  return result;
}

}  // namespace

BufferComparison compare(ElementType type, std::span<const std::byte> actual, std::span<const std::byte> expected,
                         double absolute_tolerance, double relative_tolerance) {
  if (actual.size() != expected.size()) {
    BufferComparison result;
    result.equal = false;
    result.error = kInfinity;
    result.message = fmt::format("{} bytes instead of {}", actual.size(), expected.size());
    return result;
  }
  const double floor = relative_tolerance > 0 && absolute_tolerance > 0 ? absolute_tolerance / relative_tolerance
                                                                        : std::numeric_limits<double>::min();
  const Tolerance tolerance{absolute_tolerance, relative_tolerance, floor};
  return with_elements(type,
                       [&]<class T>(T, auto load) { return compare_elements<T>(actual, expected, tolerance, load); });
}

namespace {

std::vector<double> reals(ElementType type, std::span<const std::byte> bytes) {
  return with_elements(type, [&]<class T>(T, auto load) {
    std::vector<double> values(bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = load(element<T>(bytes, i));
    return values;
  });
}

/// NaN takes precedence over all numbers, so that an output with a NaN is reported as wrong.
double extreme(const std::vector<double>& values, bool largest) {
  double found = values.empty() ? 0 : values.front();
  for (const double x : values)
    if (std::isnan(x) || (largest ? x > found : x < found)) found = x;
  return found;
}

std::vector<double> reduced(Compare how, std::vector<double> values) {
  switch (how) {
    case Compare::sum:
      return {std::accumulate(values.begin(), values.end(), 0.0)};
    case Compare::minimum:
      return {extreme(values, false)};
    case Compare::maximum:
      return {extreme(values, true)};
    case Compare::sorted:
      // NaN is sorted to the end
      std::ranges::sort(values, [](double a, double b) { return a < b || (!std::isnan(a) && std::isnan(b)); });
      break;
    case Compare::elements:
      break;
  }
  return values;
}

bool is_whole(ElementType type) { return type < ElementType::float16; }

}  // namespace

std::vector<std::size_t> sampled_elements(std::size_t count) {
  constexpr std::size_t kMost = 4096;
  constexpr double kTurn = 0.6180339887498949;  // so that no stride of an output is met
  std::vector<std::size_t> indices(std::min(count, kMost));
  const double each = static_cast<double>(count) / static_cast<double>(std::max<std::size_t>(1, indices.size()));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const double shift = std::fmod(static_cast<double>(i) * kTurn, 1);
    indices[i] = std::min(count - 1, static_cast<std::size_t>((static_cast<double>(i) + shift) * each));
  }
  return indices;
}

double usual_size(std::vector<double> values) {
  constexpr double kOfNothing = 0.01;
  constexpr std::size_t kMarks = 3;  // equal elements
  constexpr double kApart = 10, kAround = 3;
  for (double& x : values) x = std::abs(x);
  std::erase_if(values, [](double x) { return x == 0 || !std::isfinite(x); });
  if (values.empty()) return kOfNothing;
  std::ranges::sort(values);
  for (;;) {
    const auto marks = std::ranges::lower_bound(values, values.back());
    if (marks == values.begin() || values.end() - marks < std::ptrdiff_t{kMarks} ||
        values.back() < kApart * *std::prev(marks))
      break;
    values.erase(marks, values.end());
  }
  double squares = 0;
  for (const double x : values) squares += x * x / static_cast<double>(values.size());
  return std::min(std::sqrt(squares), std::max(kOfNothing, kAround * values[values.size() / 4]));
}

double usual_size(ElementType type, std::span<const std::byte> contents) {
  return with_elements(type, [&]<class T>(T, auto load) {
    std::vector<double> values;
    for (const std::size_t i : sampled_elements(contents.size() / sizeof(T)))
      values.push_back(load(element<T>(contents, i)));
    const bool shows_nothing = std::ranges::all_of(values, [](double x) { return x == 0; });
    return usual_size(shows_nothing ? reals(type, contents) : std::move(values));
  });
}

std::size_t not_finite_in(ElementType type, std::span<const std::byte> contents) {
  if (is_whole(type)) return 0;
  return with_elements(type, [&]<class T>(T, auto load) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < contents.size() / sizeof(T); ++i)
      count += !std::isfinite(load(element<T>(contents, i)));
    return count;
  });
}

BufferComparison compare(Compare how, ElementType type, std::span<const std::byte> actual,
                         std::span<const std::byte> expected, double absolute_tolerance, double relative_tolerance) {
  if (how == Compare::elements || actual.size() != expected.size())
    return compare(type, actual, expected, absolute_tolerance, relative_tolerance);
  const std::vector<double> ours = reduced(how, reals(type, actual)), theirs = reduced(how, reals(type, expected));
  BufferComparison found = compare(ElementType::float64, std::as_bytes(std::span(ours)),
                                   std::as_bytes(std::span(theirs)), absolute_tolerance, relative_tolerance);
  if (found.equal) return found;
  found.message = how == Compare::sorted
                      ? "sorted, " + found.message
                      : fmt::format("its {} is {:.9g} instead of {:.9g}", to_string(how), ours.front(), theirs.front());
  return found;
}

BufferComparison compare_output(const Verification& verification, const std::string& output, ElementType type,
                                std::span<const std::byte> actual, std::span<const std::byte> expected) {
  const auto how = verification.compare.find(output);
  const std::optional<double> given = verification.absolute_tolerance;
  const bool exact = is_whole(type) && !given && verification.relative_tolerance == Verification().relative_tolerance;
  const double relative = exact ? 0 : verification.relative_tolerance;
  const double absolute = exact ? 0 : given ? *given : relative * usual_size(type, expected);
  BufferComparison found = compare(how == verification.compare.end() ? Compare::elements : how->second, type, actual,
                                   expected, absolute, relative);
  if (found.equal || actual.size() != expected.size()) return found;
  found.message += fmt::format(
      " (permitted: {}; absolute_tolerance and relative_tolerance of [verification])",
      exact ? "no difference of whole numbers" : fmt::format("{:.3g} + {} * |expected|", absolute, relative));
  constexpr std::size_t kSorted = std::size_t{1} << 20;  // bytes
  if (how == verification.compare.end() && actual.size() <= kSorted &&
      compare(Compare::sorted, type, actual, expected, absolute, relative).equal)
    found.message += fmt::format(
        "; it has the same elements in another order: if any order is right, write compare = {{ {} = \"sorted\" }} "
        "there",
        output);
  return found;
}

}  // namespace ergotune
