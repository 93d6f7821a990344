#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <set>

#include "base/half.hpp"
#include "base/npy.hpp"
#include "ergotune/error.hpp"
#include "error_of.hpp"
#include "measure/buffers/arguments.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

template <class T>
std::vector<T> as(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Argument buffer(ElementType type, Fill fill) {
  Argument argument;
  argument.name = std::string(1, 'a');
  argument.type = type;
  argument.fill = std::move(fill);
  return argument;
}

TEST(Half, EveryValueGoesThereAndBack) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double value = half_to_double(half);
    if (std::isnan(value)) continue;
    EXPECT_EQ(half_from(value), half) << bits;
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(half_to_double(half_from(1.0 + 1.0 / 2048)), 1.0);               // a tie, down to even
  EXPECT_EQ(half_to_double(half_from(1.0 + 3.0 / 2048)), 1.0 + 2.0 / 1024);  // a tie, up to even
  EXPECT_EQ(half_to_double(half_from(65519.0)), 65504.0);
  EXPECT_TRUE(std::isinf(half_to_double(half_from(65520.0))));
  EXPECT_EQ(half_from(-0.0), 0x8000);
}

TEST(Fill, RandomIsTheSameAgainAndDiffersBetweenArguments) {
  const Argument argument = buffer(ElementType::float32, {});
  const auto first = as<float>(initial_contents(argument, 1000, 0));
  EXPECT_EQ(first, as<float>(initial_contents(argument, 1000, 0)));
  EXPECT_NE(first, as<float>(initial_contents(argument, 1000, 1)));
  for (const float x : first) {
    EXPECT_GE(x, -1);
    EXPECT_LT(x, 1);
  }
  EXPECT_GT(std::set<float>(first.begin(), first.end()).size(), 990u);
}

TEST(Fill, RandomIntegersReachBothEnds) {
  Fill fill;
  fill.low = -2;
  fill.high = 2;
  const auto values = as<std::int8_t>(initial_contents(buffer(ElementType::int8, fill), 1000, 0));
  EXPECT_EQ(std::set<int>(values.begin(), values.end()), (std::set<int>{-2, -1, 0, 1, 2}));
}

TEST(Fill, RangeAndConstant) {
  Fill range;
  range.kind = Fill::Kind::range;
  range.start = 3;
  range.step = 0.5;
  EXPECT_EQ(as<double>(initial_contents(buffer(ElementType::float64, range), 3, 0)), (std::vector<double>{3, 3.5, 4}));
  Fill constant;
  constant.kind = Fill::Kind::constant;
  constant.value = 7;
  EXPECT_EQ(as<std::uint16_t>(initial_contents(buffer(ElementType::uint16, constant), 2, 0)),
            (std::vector<std::uint16_t>{7, 7}));
}

TEST(Fill, DataOfAnotherSizeAreRefused) {
  Fill fill;
  fill.kind = Fill::Kind::data;
  fill.data = std::make_shared<const std::vector<std::uint8_t>>(7);
  EXPECT_THROW(initial_contents(buffer(ElementType::float32, fill), 2, 0), UserError);
  EXPECT_EQ(as<std::uint8_t>(initial_contents(buffer(ElementType::uint8, fill), 7, 0)), *fill.data);
  fill.data.reset();
  EXPECT_THROW(initial_contents(buffer(ElementType::uint8, fill), 1, 0), UserError) << "none are given";
}

TEST(Fill, MoreThanTheMachineHasIsRefusedBeforeItIsTried) {
  try {
    initial_contents(buffer(ElementType::float64, {}), std::size_t{1} << 50, 0);
    ADD_FAILURE();
  } catch (const UserError& error) {
    const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
    const std::string message =
        fmt::format("8388608.0 GiB; this machine has {:.1f} GiB of memory", memory / (1024.0 * 1024 * 1024));
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  }
}

TEST(Scalar, AStructureIsLaidOutAsInC) {
  struct Grid {
    std::int8_t flag;
    double step;
    std::int32_t n;
    std::uint16_t last;
  };
  Argument argument;
  argument.kind = Argument::Kind::scalar;
  argument.fields = {{"flag", ElementType::int8, Expression::parse("-1")},
                     {"step", ElementType::float64, Expression::parse("bx / 4")},
                     {"n", ElementType::int32, Expression::parse("bx")},
                     {"last", ElementType::uint16, Expression::parse("7")}};
  const Value ten(10);
  const Scope scope = [&](std::string_view name) { return name == "bx" ? &ten : nullptr; };
  EXPECT_EQ(size_of(argument.fields), sizeof(Grid));
  const auto grid = as<Grid>(scalar_bytes(argument, scope));
  ASSERT_EQ(grid.size(), 1u);
  EXPECT_EQ(grid[0].flag, -1);
  EXPECT_EQ(grid[0].step, 2.5);
  EXPECT_EQ(grid[0].n, 10);
  EXPECT_EQ(grid[0].last, 7);
  argument.fields[0].value = Expression::parse("300");
  EXPECT_THROW(scalar_bytes(argument, scope), UserError);
}

TEST(Scalar, IsConvertedOrRefused) {
  EXPECT_EQ(as<std::int32_t>(scalar_bytes(ElementType::int32, Value(-5))), std::vector<std::int32_t>{-5});
  EXPECT_EQ(as<float>(scalar_bytes(ElementType::float32, Value(1.5))), std::vector<float>{1.5f});
  EXPECT_EQ(as<std::int64_t>(scalar_bytes(ElementType::int64, Value(2.0))), std::vector<std::int64_t>{2});
  EXPECT_EQ(as<std::uint32_t>(scalar_bytes(ElementType::uint32, Value(0))), std::vector<std::uint32_t>{0});
  EXPECT_THROW(scalar_bytes(ElementType::uint8, Value(256)), UserError);
  EXPECT_THROW(scalar_bytes(ElementType::uint32, Value(-1)), UserError);
  EXPECT_THROW(scalar_bytes(ElementType::int32, Value(1.5)), UserError);
  EXPECT_THROW(scalar_bytes(ElementType::int32, Value("n")), UserError);
}

using testing::AllOf;
using testing::HasSubstr;

struct ArrayFiles : testing::Test {
  const std::vector<float> numbers{1.5f, -2.0f, 3.25f};
  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
  std::string elements() const { return {reinterpret_cast<const char*>(numbers.data()), 12}; }
  std::filesystem::path write(const char* name, const std::string& bytes) const { return temporary.write(name, bytes); }
  /// NumPy's file of these elements, with something else in its header.
  std::filesystem::path npy(const std::string& descr, const std::string& order = "False",
                            const std::string& shape = "(3,)") const {
    std::string header = "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
    header.resize(117, ' ');
    header += "\n";
    return write("x.npy",
                 std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header + elements());
  }
  std::vector<float> read(const std::filesystem::path& file, ElementType type = ElementType::float32) const {
    const auto bytes = read_array_file(file, type, 12, "fills argument \"a\"");
    std::vector<float> values(3);
    std::memcpy(values.data(), bytes.data(), 12);
    return values;
  }
  std::string complaint(const std::filesystem::path& file, ElementType type = ElementType::float32) const {
    return error_of([&] { read(file, type); }, "none");
  }
};

TEST_F(ArrayFiles, AreRawElementsOrNumPys) {
  EXPECT_EQ(read(write("x.bin", elements())), numbers);
  EXPECT_EQ(read(write("x.npy", npy_header("<f4", 3) + elements())), numbers);
  EXPECT_EQ(read(npy("<f4")), numbers);
  EXPECT_EQ(read(npy("|f4")), numbers);
}

TEST_F(ArrayFiles, ThatAreNotThereOrOfAnotherSizeAreNamed) {
  EXPECT_THAT(complaint(folder / "none.bin"), HasSubstr("none.bin"));
  EXPECT_THAT(complaint(write("x.bin", elements() + "1")), HasSubstr("13 bytes"));
  EXPECT_THAT(complaint(write("x.npy", npy_header("<f4", 3) + elements().substr(1))), HasSubstr("has 11 bytes"));
  EXPECT_THAT(complaint(write("x.npy", elements())), HasSubstr("is not a complete .npy file"));
}

TEST_F(ArrayFiles, OfNumPyMustHaveTheArgumentsType) {
  EXPECT_THAT(complaint(npy("<i4")), AllOf(HasSubstr("NumPy's type <i4"), HasSubstr("float32 (<f4)")));
  EXPECT_THAT(complaint(npy("<f8")), HasSubstr("NumPy's type <f8"));
  EXPECT_THAT(complaint(npy(">f4")), HasSubstr("NumPy's type >f4")) << "the other order of bytes";
  EXPECT_EQ(complaint(npy("<i4"), ElementType::int32), "none");
}

TEST_F(ArrayFiles, InFortransOrderAreRefusedWhereThatMatters) {
  EXPECT_EQ(complaint(npy("<f4", "True")), "none") << "one dimension has no order";
  EXPECT_THAT(complaint(npy("<f4", "True", "(1, 3)")), HasSubstr("in Fortran's order"));
  EXPECT_EQ(complaint(npy("<f4", "False", "(1, 3)")), "none");
}

}  // namespace
}  // namespace ergotune
