#include "store/result_set.hpp"

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

TEST(TellingLine, IsTheFirstThatSaysError) {
  EXPECT_EQ(most_informative_line(
                "kernel.c: In function 'f':\nkernel.c:3:9: error: 'n' undeclared\n   3 | n\nkernel.c:4: error: b"),
            "kernel.c:3:9: error: 'n' undeclared");
  EXPECT_EQ(most_informative_line("k.F90:4:7:\n\n    4 | x = 1\nError: Symbol 'x' has no type"),
            "Error: Symbol 'x' has no type");
  EXPECT_EQ(most_informative_line("\n  signal 11\nmore"), "signal 11");
  EXPECT_EQ(most_informative_line(" \t signal 11 \t"), "signal 11");
  EXPECT_EQ(most_informative_line(""), "");
  EXPECT_EQ(most_informative_line("\n \n"), "");
}

}  // namespace
}  // namespace ergotune
