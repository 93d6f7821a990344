// Buffers by name, for all kernels of a problem.
#include "measure/buffers/problem_buffers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "ergotune/error.hpp"
#include "error_of.hpp"
#include "measure/runner_fixture.hpp"

namespace ergotune {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Lists = std::vector<std::vector<Argument>>;

class ProblemBuffersTest : public ::testing::Test {
 protected:
  ProblemBuffers make(const Lists& lists) {
    kept = lists;
    ArgumentLists pointers;
    for (const auto& list : kept) pointers.push_back(&list);
    return ProblemBuffers(device, pointers, {{"n", Value(static_cast<int>(kCount))}});
  }
  std::string complaint(const Lists& lists) {
    return error_of([&] { make(lists); }, "none");
  }
  static FakeBuffer& bound(const ProblemBuffers& buffers, const std::vector<Argument>& list, std::size_t i) {
    const auto arguments = buffers.bind(list, {});
    return const_cast<FakeBuffer&>(static_cast<const FakeBuffer&>(*arguments[i].buffer));
  }
  FakeDevice device;
  Lists kept;
};

TEST_F(ProblemBuffersTest, TheSameNameIsTheSameBuffer) {
  const auto buffers = make({{buffer("a", Access::read), buffer("t", Access::write)},
                             {buffer("t", Access::read), buffer("out", Access::write)}});
  bound(buffers, kept[0], 1).floats()[3] = 42;
  EXPECT_EQ(bound(buffers, kept[1], 0).floats()[3], 42);
  EXPECT_NE(bound(buffers, kept[1], 1).floats(), bound(buffers, kept[1], 0).floats());
  EXPECT_THAT(buffers.outputs(), ElementsAre("t", "out"));
}

TEST_F(ProblemBuffersTest, KernelsMustAgreeOnTypeAndSize) {
  auto other = buffer("t", Access::read);
  other.type = ElementType::int32;
  EXPECT_THAT(complaint({{buffer("t", Access::write)}, {other}}),
              HasSubstr("argument \"t\" is float32 in one kernel and int32 in another"));
  other = buffer("t", Access::read);
  other.count = Expression::parse("n + 1");
  EXPECT_THAT(complaint({{buffer("t", Access::write)}, {other}}),
              HasSubstr("argument \"t\" has 256 elements in one kernel and 257 in another"));
  EXPECT_THAT(complaint({{buffer("t", Access::write), buffer("t", Access::read)}}),
              HasSubstr("two arguments of one kernel are called \"t\""));
}

TEST_F(ProblemBuffersTest, ARoundChangesItsInputsOnlyWhereItReadsBeforeItWrites) {
  EXPECT_FALSE(make({{buffer("t", Access::write)}, {buffer("t", Access::read)}}).has_in_out());
  EXPECT_FALSE(make({{buffer("t", Access::write)}, {buffer("t", Access::read_write)}}).has_in_out());
  EXPECT_TRUE(make({{buffer("t", Access::read)}, {buffer("t", Access::write)}}).has_in_out());
  EXPECT_TRUE(make({{buffer("t", Access::read_write)}}).has_in_out());
}

TEST_F(ProblemBuffersTest, WhatIsWrittenOutsideIsNamedAndMended) {
  auto buffers = make({{buffer("a", Access::read), buffer("b", Access::write)}});
  EXPECT_EQ(buffers.written_outside(), "");
  std::vector<std::byte> before;
  buffers.read("a", before);
  float* a = bound(buffers, kept[0], 0).floats();
  float* b = bound(buffers, kept[0], 1).floats();
  b[kCount] = 1;
  a[-3] = 1;
  a[0] = 7;
  EXPECT_THAT(buffers.written_outside(),
              AllOf(HasSubstr("\"a\" is written outside of its buffer, at element -3 (it has 256)"),
                    HasSubstr("\"b\" is written outside of its buffer, at element 256 (it has 256)")));
  EXPECT_EQ(buffers.written_outside(), "");
  std::vector<std::byte> after;
  buffers.read("a", after);
  EXPECT_EQ(after, before);
}

TEST_F(ProblemBuffersTest, ABufferHoldsAddressesOfThisDeviceAndReadsAsItWasGiven) {
  device.device_info.backend = "cuda";
  auto list = buffer("list", Access::read_write);
  list.fill = {.kind = Fill::Kind::constant, .value = 7};
  list.fields = {{"&y@8", ElementType::uint64, Expression::parse("4 * n")}};
  auto buffers = make({{list, buffer("y", Access::read)}});
  const auto held = [&] {
    std::uint64_t address = 0;
    std::memcpy(&address, bound(buffers, kept[0], 0).floats() + 2, sizeof address);
    return address;
  };
  const auto y = reinterpret_cast<std::uint64_t>(bound(buffers, kept[0], 1).native_handle());
  EXPECT_EQ(held(), y + 4 * kCount);
  bound(buffers, kept[0], 0).floats()[2] = 1;
  buffers.restore();
  EXPECT_EQ(held(), y + 4 * kCount);
  std::vector<std::byte> contents;
  buffers.read("list", contents);
  const std::vector<float> given(kCount, 7);
  EXPECT_EQ(std::memcmp(contents.data(), given.data(), contents.size()), 0);
  list.fields[0].name = "&y@1020";
  EXPECT_THAT(complaint({{list, buffer("y", Access::read)}}), HasSubstr("1020"));
}

TEST_F(ProblemBuffersTest, OnlyAlikeBuffersSwap) {
  auto longer = buffer("y", Access::write), other = buffer("y", Access::write);
  longer.count = Expression::parse("2 * n");
  other.type = ElementType::int32;
  const auto words = [&](const Argument& y) -> std::string {
    kept = {{buffer("x", Access::read), y}};
    try {
      const ProblemBuffers buffers(device, {&kept[0]}, {{"n", Value(static_cast<int>(kCount))}}, nullptr, {{"x", "y"}});
      return buffers.has_in_out() ? "what is written is read in the next round" : "nothing is read again";
    } catch (const UserError& error) {
      return error.what();
    }
  };
  EXPECT_THAT(
      words(longer),
      HasSubstr("\"x\" and \"y\" cannot be swapped: one has 256 elements of float32, the other 512 of float32"));
  EXPECT_THAT(words(other), HasSubstr("one has 256 elements of float32, the other 256 of int32"));
  EXPECT_EQ(words(buffer("y", Access::write)), "what is written is read in the next round");
  EXPECT_EQ(words(buffer("y", Access::read)), "nothing is read again");
}

/// A buffer that is somebody else's: `memory`, on a device with this id.
Argument foreign(const char* name, Access access, std::vector<float>& memory, const std::string& device = "opencl:0") {
  Argument argument = buffer(name, access);
  auto given = std::make_shared<ExternalMemory>();
  given->device = device;
  given->address = memory.data();
  given->bytes = memory.size() * sizeof(float);
  given->read = [&memory](std::span<std::uint8_t> into, std::size_t offset) {
    std::memcpy(into.data(), reinterpret_cast<const std::uint8_t*>(memory.data()) + offset, into.size());
  };
  argument.fill = {.kind = Fill::Kind::data, .foreign = given};
  return argument;
}

TEST_F(ProblemBuffersTest, MemoryOfSomebodyElseIsUsedWhereItIsAndPutBack) {
  std::vector<float> x(kCount, 1.0f), y(kCount, 2.0f);
  const std::size_t room = device.memory;
  {
    auto buffers = make({{foreign("x", Access::read, x), foreign("y", Access::read_write, y)}});
    EXPECT_EQ(room - device.memory, 2 * kCount * sizeof(float)) << "a copy of each";
    EXPECT_EQ(bound(buffers, kept[0], 0).floats(), x.data());
    ASSERT_EQ(bound(buffers, kept[0], 1).floats(), y.data());
    y[5] = 42;
    std::vector<std::byte> seen;
    buffers.read("y", seen);
    EXPECT_EQ(reinterpret_cast<const float*>(seen.data())[5], 42);
    buffers.restore();
    EXPECT_EQ(y[5], 2) << "every run begins with the same contents";
    EXPECT_EQ(buffers.written_outside(), "") << "nobody can see that";
    y[7] = 43;
  }
  EXPECT_EQ(y, std::vector<float>(kCount, 2.0f));
}

TEST_F(ProblemBuffersTest, MemoryOfSomebodyElseIsKeptOnTheHostWhereTheDeviceHasNoRoom) {
  std::vector<float> y(kCount, 2.0f);
  device.memory = 16;
  auto buffers = make({{foreign("y", Access::write, y)}});
  y[5] = 42;
  buffers.restore();
  EXPECT_EQ(y[5], 2);
}

TEST_F(ProblemBuffersTest, ChangedInputsAreNamedAndPutBack) {
  auto buffers = make({{buffer("a", Access::read), buffer("b", Access::read), buffer("c", Access::write)}});
  DeviceChecksum checksums(device);
  buffers.watch_inputs(checksums);
  EXPECT_EQ(buffers.changed_inputs(), "");
  std::vector<std::byte> before, after;
  buffers.read("a", before);
  bound(buffers, kept[0], 0).floats()[17] += 1;
  bound(buffers, kept[0], 2).floats()[3] += 1;
  const std::string words = buffers.changed_inputs();
  EXPECT_THAT(words, HasSubstr("\"a\""));
  EXPECT_THAT(words, HasSubstr("element 17"));
  EXPECT_THAT(words, Not(HasSubstr("\"b\"")));
  EXPECT_THAT(words, Not(HasSubstr("\"c\"")));
  buffers.read("a", after);
  EXPECT_EQ(after, before);
  EXPECT_EQ(buffers.changed_inputs(), "");
}

TEST_F(ProblemBuffersTest, AnInputOfTheCallersThatIsChangedIsNamedAndPutBack) {
  std::vector<float> x(kCount, 1.0f);
  auto buffers = make({{foreign("x", Access::read, x)}});
  DeviceChecksum checksums(device);
  buffers.watch_inputs(checksums);
  x[9] = 5;
  EXPECT_THAT(buffers.changed_inputs(), HasSubstr("\"x\""));
  EXPECT_EQ(x, std::vector<float>(kCount, 1.0f));
}

TEST_F(ProblemBuffersTest, MemoryOnAnotherKindOfDeviceIsCopied) {
  std::vector<float> x(kCount, 3.0f);
  const auto buffers = make({{foreign("x", Access::read, x, "cuda:0")}});
  EXPECT_NE(bound(buffers, kept[0], 0).floats(), x.data());
  EXPECT_EQ(bound(buffers, kept[0], 0).floats()[9], 3);
}

TEST_F(ProblemBuffersTest, AReferenceBeginsWithWhatMemoryOfSomebodyElseHeldAtFirst) {
  std::vector<float> y(kCount, 2.0f);
  auto buffers = make({{foreign("y", Access::read_write, y)}});
  y[5] = 42;
  FakeDevice other;
  const ProblemBuffers reference(other, {&kept[0]}, {{"n", Value(static_cast<int>(kCount))}}, &buffers);
  EXPECT_NE(bound(reference, kept[0], 0).floats(), y.data());
  EXPECT_EQ(bound(reference, kept[0], 0).floats()[5], 2);
}

TEST_F(ProblemBuffersTest, OutputsAreThoseThatAConfigurationIsGiven) {
  auto row = buffer("row", Access::write), column = buffer("column", Access::write),
       both = buffer("both", Access::write);
  row.when = Expression::parse("layout == 'row'");
  column.when = Expression::parse("layout == 'column'");
  auto buffers = make({{row, column, both}});
  EXPECT_THAT(buffers.outputs(), ElementsAre("row", "column", "both"));
  buffers.choose({"column", "both"});
  EXPECT_THAT(buffers.outputs(), ElementsAre("column", "both"));
  const Value layout("column");
  const auto bound = buffers.bind(kept[0], [&](std::string_view) { return &layout; });
  ASSERT_EQ(bound.size(), 2u);
  EXPECT_NE(bound[0].buffer, bound[1].buffer);
}

}  // namespace
}  // namespace ergotune
