// Buffers by name, for all kernels of a problem.
#include "measure/problem_buffers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ergotune/base/error.hpp"
#include "measure/arguments.hpp"
#include "measure/runner_fixture.hpp"

namespace ergotune {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
    try {
      make(lists);
    } catch (const UserError& error) {
      return error.what();
    }
    return "none";
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

TEST_F(ProblemBuffersTest, ContentsAreThoseOfTheArgumentsPlace) {
  const auto buffers = make({{buffer("a", Access::read), buffer("b", Access::write)}});
  std::vector<std::byte> b;
  buffers.read("b", b);
  EXPECT_EQ(b, initial_contents(kept[0][1], kCount, 1)) << "the numbers of earlier versions";
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
  EXPECT_EQ(buffers.written_outside(),
            "argument \"a\" is written outside of its buffer, at element -3 (it has 256); "
            "argument \"b\" is written outside of its buffer, at element 256 (it has 256)");
  EXPECT_EQ(buffers.written_outside(), "");
  std::vector<std::byte> after;
  buffers.read("a", after);
  EXPECT_EQ(after, before);
}

TEST_F(ProblemBuffersTest, CopyingOneBuffersZoneIntoAnothersIsSeen) {
  auto buffers = make({{buffer("a", Access::read), buffer("b", Access::write)}});
  const float* a = bound(buffers, kept[0], 0).floats();
  float* b = bound(buffers, kept[0], 1).floats();
  for (std::size_t i = 0; i < kCount + 64; ++i) b[i] = a[i];
  EXPECT_THAT(buffers.written_outside(), HasSubstr("argument \"b\" is written outside"));
}

TEST_F(ProblemBuffersTest, ZonesHoldFiniteNumbersOfEveryType) {
  const auto buffers = make({{buffer("a", Access::read)}});
  const auto* inside = reinterpret_cast<const std::byte*>(bound(buffers, kept[0], 0).floats());
  const auto check = [&](const std::byte* from, std::size_t bytes) {
    for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
      double real = 0;
      float single[2] = {};
      std::uint16_t half[4] = {};
      std::memcpy(&real, from + i, 8);
      std::memcpy(&single, from + i, 8);
      std::memcpy(&half, from + i, 8);
      ASSERT_TRUE(std::isfinite(real) && std::isfinite(single[0]) && std::isfinite(single[1]));
      for (const auto h : half) ASSERT_LT(std::abs(half_to_double(h)), 64);
    }
  };
  check(inside - GuardedBuffer::kBefore, GuardedBuffer::kBefore);
  check(inside + 4 * kCount, GuardedBuffer::kBehind);
}

}  // namespace
}  // namespace ergotune
