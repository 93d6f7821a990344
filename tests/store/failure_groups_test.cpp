#include "store/failure_groups.hpp"

#include <gtest/gtest.h>

namespace ergotune {
namespace {

TEST(FailureGroups, NumbersAndScratchFoldersMakeNoKindOfTheirOwn) {
  FailureGroups groups;
  groups.add(0, Status::compile_error, "/tmp/ergotune-host-aB3xY/kernel.c:3: error: 3 is odd");
  groups.add(1, Status::wrong_result, "c[5] is 3.25, not 7");
  groups.add(2, Status::wrong_result, "c[17] is 81, not 7.5");
  groups.add(3, Status::runtime_error, "c[17] is 81, not 7.5");
  groups.add(4, Status::compile_error, "/tmp/ergotune-host-Zz9/kernel.c:3: error: 5 is odd");
  groups.add(5, Status::wrong_result, "c[170] is 8, not 7");
  groups.add(6, Status::wrong_result, "c[1] is 2e+30, not 1e-05");
  groups.add(7, Status::wrong_result, "c[1] is 5e, not 1e+");
  const auto list = groups.list();
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[0].count, 4u);
  EXPECT_EQ(list[0].first, 1u);
  EXPECT_EQ(list[0].message, "c[5] is 3.25, not 7") << "the first one's, whole";
  EXPECT_EQ(list[1].count, 2u);
  EXPECT_EQ(list[2].status, Status::runtime_error) << "the same words of another status";
  EXPECT_EQ(list[3].first, 7u) << "a letter after a number is no exponent";
}

TEST(FailureGroups, PoclsScratchFilesMakeNoKindOfTheirOwn) {
  FailureGroups groups;
  groups.add(0, Status::compile_error, "error: add.cl:1:9 <Spelling=/cache/tempfile_vkHAHJ.cl:2:11>: expected ')'");
  groups.add(1, Status::compile_error, "error: add.cl:1:9 <Spelling=/cache/tempfile_NQ2byS.cl:2:11>: expected ')'");
  groups.add(2, Status::compile_error, "error: add.cl:1:9 <Spelling=/cache/tempfile_4f1q7h.cl:2:11>: expected ';'");
  ASSERT_EQ(groups.list().size(), 2u);
  EXPECT_EQ(groups.list()[0].count, 2u);
}

/// Whether two messages are one kind of failure.
bool one_kind(const std::string& a, const std::string& b) {
  FailureGroups groups;
  groups.add(0, Status::runtime_error, a);
  groups.add(1, Status::runtime_error, b);
  return groups.list().size() == 1;
}

TEST(FailureGroups, EachWayToWriteANumberIsANumber) {
  for (const char* number : {"0", "7", "12345", "3.25", "0.5", "12.5", "1e-5", "1e-05", "2e+30", "2e+3", "1.5e-05", "3.25e+100", "123.4e-10"}) {
    EXPECT_TRUE(one_kind(number, "8")) << number;
    EXPECT_TRUE(one_kind("is " + std::string(number) + ", x", "is 8, x")) << number;
    EXPECT_FALSE(one_kind(number, "x")) << number;
    EXPECT_FALSE(one_kind(std::string(number) + "x", number)) << number;
  }
  for (const char* behind : {".", ".x", "..5", "e", "e5", "e-", "e-x", "e+", "e+x", ".e", "x5", "+5", "-5", "e*5"}) {
    for (const char* number : {"8", "98", "1234", "12345", "1.5", "1e-5"})
      EXPECT_TRUE(one_kind(number + std::string(behind), "3" + std::string(behind))) << number << behind;
    EXPECT_FALSE(one_kind("8" + std::string(behind), "8")) << behind << " is no part of a number";
  }
  EXPECT_FALSE(one_kind("1.x", "1 x"));
  EXPECT_FALSE(one_kind("1e-x", "1e+x"));
  EXPECT_FALSE(one_kind("ab", "cb")) << "words differ from their first letter on";
  EXPECT_FALSE(one_kind("ab", "ac")) << "to their last";
  EXPECT_FALSE(one_kind("", "1"));
}

TEST(FailureGroups, AScratchNameEndsWhereItsLettersDo) {
  for (const char* name : {"ergotune-", "tempfile_"}) {
    const std::string scratch = name;
    EXPECT_TRUE(one_kind("in " + scratch + "aZ09-x", "in " + scratch + "b"));
    EXPECT_TRUE(one_kind(scratch + "aZ9/k.c: no", scratch + "b/k.c: no"));
    EXPECT_FALSE(one_kind(scratch + "a/k.c", scratch + "a/l.c"));
    EXPECT_FALSE(one_kind(scratch + "a.k", scratch + "ak"));
    EXPECT_FALSE(one_kind(scratch + "a", "other"));
  }
  EXPECT_FALSE(one_kind("ergotune-a", "tempfile_a"));
  EXPECT_FALSE(one_kind("ergotunes-a", "ergotunes-b")) << "no such name";
}

TEST(FailureGroups, AsCommonOnesStandInTheOrderTheyWereMet) {
  FailureGroups groups;
  const char* words[] = {"a", "b", "c", "c", "d", "d", "e"};
  for (std::size_t i = 0; i < std::size(words); ++i) groups.add(i + 10, Status::timeout, words[i]);
  std::string order;
  for (const FailureGroup& group : groups.list()) order += group.message + std::to_string(group.count) + "@" + std::to_string(group.first) + " ";
  EXPECT_EQ(order, "c2@12 d2@14 a1@10 b1@11 e1@16 ");
}

TEST(TellingLine, OneOfAnyKindOfErrorGoesBeforeTheFirst) {
  EXPECT_EQ(telling_line("first\nk.c:3: error: x\nerror: y"), "k.c:3: error: x");
  EXPECT_EQ(telling_line("first\nError: x"), "Error: x");
  EXPECT_EQ(telling_line("first\nerror C2065 x\nlast"), "error C2065 x") << "as it begins";
  EXPECT_EQ(telling_line("error 5\nk.c: error: x"), "error 5");
  EXPECT_EQ(telling_line("first\nno errors found\nan error C5"), "first");
  EXPECT_EQ(telling_line("\t \r\n  first  \r\nsecond"), "first");
  EXPECT_EQ(telling_line("x"), "x");
  EXPECT_EQ(telling_line("x\n"), "x");
  EXPECT_EQ(telling_line("\nx y"), "x y");
}

TEST(TellingLine, IsTheFirstThatSaysError) {
  EXPECT_EQ(telling_line("kernel.c: In function 'f':\nkernel.c:3:9: error: 'n' undeclared\n   3 | n\nkernel.c:4: error: b"),
            "kernel.c:3:9: error: 'n' undeclared");
  EXPECT_EQ(telling_line("k.F90:4:7:\n\n    4 | x = 1\nError: Symbol 'x' has no type"), "Error: Symbol 'x' has no type");
  EXPECT_EQ(telling_line("\n  signal 11\nmore"), "signal 11");
  EXPECT_EQ(telling_line(" \t signal 11 \t"), "signal 11");
  EXPECT_EQ(telling_line(""), "");
  EXPECT_EQ(telling_line("\n \n"), "");
}

}  // namespace
}  // namespace ergotune
