// Structs as bytes and back.
#include "base/messages/serialise.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace serialise_test {

using namespace ergotune;

enum class Colour : std::uint8_t { red, green, blue };
constexpr Colour last_value(Colour) { return Colour::blue; }

struct Inner {
  double number = 0;
  std::optional<std::int32_t> maybe;
  bool operator==(const Inner&) const = default;
};
auto fields(Inner& inner) {
  auto& [number, maybe] = inner;
  return std::tie(number, maybe);
}

struct Outer {
  Colour colour = Colour::red;
  bool flag = false;
  std::string text;
  std::filesystem::path path;
  std::vector<Inner> list;
  std::map<std::string, std::vector<std::string>> map;
  std::variant<std::int64_t, std::string> either;
  bool operator==(const Outer&) const = default;
};
auto fields(Outer& outer) {
  auto& [colour, flag, text, path, list, map, either] = outer;
  return std::tie(colour, flag, text, path, list, map, either);
}

Outer rich() {
  return {Colour::blue, true, std::string("a\0b", 3), "/a/b", {{1.5, 7}, {-2, {}}}, {{"x", {"1", ""}}, {"y", {}}},
          "or"};
}

Outer read(std::string_view bytes, SerialLimits limits = {}) {
  Reader reader(bytes, limits);
  auto value = reader.take<Outer>();
  reader.end();
  return value;
}

TEST(Serialise, EveryFieldComesBack) { EXPECT_EQ(read(Writer()(rich()).take()), rich()); }

TEST(Serialise, CutOrLengthenedBytesAreRefused) {
  const std::string bytes = Writer()(rich()).take();
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW(read(std::string_view(bytes).substr(0, length)), FormatError) << length;
  EXPECT_THROW(read(bytes + '\0'), FormatError);
}

TEST(Serialise, WhatNobodyCouldHaveWrittenIsRefused) {
  const auto bytes = [](auto... values) { return Writer()(values...).take(); };
  EXPECT_THROW(Reader(bytes(std::uint8_t{3})).take<Colour>(), FormatError);
  EXPECT_THROW(Reader(bytes(std::uint8_t{2})).take<bool>(), FormatError);
  using Either = std::variant<std::int64_t, std::string>;
  EXPECT_THROW(Reader(bytes(std::uint8_t{2}, std::int64_t{0})).take<Either>(), FormatError);
  EXPECT_THROW(Reader("").take_alternative<Either>(2), FormatError);
  EXPECT_THROW(Reader(bytes(std::uint32_t{0xffffffff})).take<std::string>(), FormatError);
  EXPECT_THROW(Reader(bytes(std::uint32_t{0xffffffff})).take<std::vector<Inner>>(), FormatError)
      << "no memory is taken";
}

TEST(Serialise, LimitsCutWhatIsWrittenAndRefuseWhatIsRead) {
  const SerialLimits limits{4, 2, true};
  const auto cut = Writer(limits)(std::string("too long"), std::vector<double>{1, 2, 3}).take();
  Reader reader(cut, limits);
  EXPECT_EQ(reader.take<std::string>(), "too ");
  EXPECT_EQ(reader.take<std::vector<double>>(), (std::vector<double>{1, 2}));
  reader.end();
  EXPECT_THROW(Reader(Writer()(std::string("12345")).take(), limits).take<std::string>(), FormatError);
  EXPECT_THROW(Reader(Writer()(std::vector<double>{1, 2, 3}).take(), limits).take<std::vector<double>>(), FormatError);
  EXPECT_THROW(Reader(Writer()(std::nan("")).take(), limits).take<double>(), FormatError);
  EXPECT_TRUE(std::isnan(Reader(Writer()(std::nan("")).take()).take<double>())) << "without limits it is a number";
}

RC_GTEST_PROP(Serialise, RandomBytesAreRefusedOrWrittenBackTheSame, (const std::vector<std::uint8_t>& random)) {
  const std::string_view bytes(reinterpret_cast<const char*>(random.data()), random.size());
  try {
    const std::string written = Writer()(read(bytes)).take();
    RC_ASSERT(Writer()(read(written)).take() == written);
  } catch (const FormatError&) {
  }
}

RC_GTEST_PROP(Serialise, AnyTextAndNumbersComeBack,
              (const std::string& text, const std::vector<std::int64_t>& numbers)) {
  const std::string bytes = Writer()(text, numbers).take();
  Reader reader(bytes);
  RC_ASSERT(reader.take<std::string>() == text);
  RC_ASSERT(reader.take<std::vector<std::int64_t>>() == numbers);
  reader.end();
}

}  // namespace serialise_test
