// The direction of includes, and type names that are unique. The scripts are
// run on this tree, and on small trees that offend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/files.hpp"
#include "base/process.hpp"

namespace ergotune {
namespace {

using ::testing::HasSubstr;

class HouseTest : public ::testing::Test {
 protected:
  HouseTest() {
    put("src/CMakeLists.txt",
        "ergotune_layer(base)\nergotune_layer(power USES base LIBRARIES fmt::fmt)\nergotune_layer(device "
        "USES base)\n"
        "target_link_libraries(ergotuned PRIVATE ergotune_power ergotune_warnings)\n");
    for (const char* folder : {"base", "power", "device"})
      std::filesystem::create_directories(root / "include/ergotune" / folder);
  }
  ~HouseTest() override { std::filesystem::remove_all(root); }

  void put(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((root / name).parent_path());
    ASSERT_EQ(write_file(root / name, text), 0) << name;
  }
  static ProcessResult script(const std::string& name, const std::filesystem::path& where) {
    return run_process({"python3", ERGOTUNE_SOURCE_DIR "/scripts/" + name, where.string()});
  }
  /// What the script says of the small tree; empty when it is content.
  std::string complaints(const std::string& name) {
    const auto result = script(name, root);
    EXPECT_EQ(result.exit_code, result.out.empty() ? 0 : 1) << result.err;
    return result.out;
  }

  const std::filesystem::path root =
      std::filesystem::temp_directory_path() / ("ergotune-house-" + std::to_string(::getpid()));
};

TEST_F(HouseTest, IncludesOfThisTreePointDownwards) {
  const auto result = script("check-includes", ERGOTUNE_SOURCE_DIR);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST_F(HouseTest, EachTypeOfThisTreeHasANameOfItsOwn) {
  const auto result = script("check-names", ERGOTUNE_SOURCE_DIR);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST_F(HouseTest, AnIncludeThatPointsUpwardsIsFoundAlsoInAHeaderThatNobodyCompiles) {
  put("src/base/a.cpp", "// a comment\n#include \"power/b.hpp\"\n");
  put("include/ergotune/base/only.hpp", "#pragma once\n#  include \"ergotune/power/b.hpp\"\n");
  const std::string out = complaints("check-includes");
  EXPECT_THAT(out, HasSubstr("src/base/a.cpp:2: base may not include from power"));
  EXPECT_THAT(out, HasSubstr("include/ergotune/base/only.hpp:2: base may not include from power"));
}

}  // namespace
}  // namespace ergotune
