#include "base/driver_table.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ergotune {
namespace {

struct MathTable : DriverTable {
  explicit MathTable(const char* file) : DriverTable({file}) {}
  EntryPoint<double(double)> cube_root{this, "cbrt"};
  EntryPoint<double(double)> renamed{this, "new_name_of_sqrt", "sqrt"};
  EntryPoint<double(double)> optional{this, "no_such_function", Need::optional};
};
struct DemandingTable : MathTable {
  using MathTable::MathTable;
  EntryPoint<int()> one{this, "no_such_function"};
  EntryPoint<int()> two{this, "nor_this"};
};

TEST(DriverTable, EntriesAreCalledLikeFunctions) {
  const MathTable table("libm.so.6");
  ASSERT_TRUE(table.usable()) << table.problem();
  EXPECT_EQ(table.problem(), "");
  EXPECT_DOUBLE_EQ(table.cube_root(27), 3);
  EXPECT_STREQ(table.cube_root.symbol(), "cbrt");
  EXPECT_DOUBLE_EQ(table.renamed(9), 3);
  EXPECT_STREQ(table.renamed.symbol(), "sqrt");
  EXPECT_FALSE(table.optional);
}

TEST(DriverTable, WhatIsRequiredAndMissingIsNamed) {
  const DemandingTable table("libm.so.6");
  EXPECT_FALSE(table.usable());
  EXPECT_EQ(table.problem(), "libm.so.6 lacks no_such_function, nor_this");
}

TEST(DriverTable, ALibraryThatIsNotThereIsNoCrash) {
  const MathTable table("libno-such.so.1");
  EXPECT_FALSE(table.usable());
  EXPECT_FALSE(table.cube_root);
  EXPECT_NE(table.problem().find("libno-such.so.1"), std::string::npos);
  EXPECT_EQ(table.library_name(), "");
}

TEST(DriverTable, AVariableOverridesTheUsualNames) {
  EXPECT_EQ(library_names("ERGOTUNE_TEST_LIBRARY", {"a", "b"}), (std::vector<std::string>{"a", "b"}));
  ::setenv("ERGOTUNE_TEST_LIBRARY", "/x/lib.so", 1);
  EXPECT_EQ(library_names("ERGOTUNE_TEST_LIBRARY", {"a", "b"}), std::vector<std::string>{"/x/lib.so"});
  ::unsetenv("ERGOTUNE_TEST_LIBRARY");
}

}  // namespace
}  // namespace ergotune
