// The shape of the house: which folder includes from which, and how long a function may be. The scripts are
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
using ::testing::Not;

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

TEST_F(HouseTest, NothingInThisTreeIsTooLong) {
  const auto result = script("check-lengths", ERGOTUNE_SOURCE_DIR);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST_F(HouseTest, EachTypeOfThisTreeHasANameOfItsOwn) {
  const auto result = script("check-names", ERGOTUNE_SOURCE_DIR);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST_F(HouseTest, TwoTypesOfOneNameAreFoundWhereverTheyAre) {
  put("include/ergotune/power/a.hpp", "namespace ergotune {\nstruct Pair {\n  struct Inner {};\n};\nclass Later;\n}\n");
  put("src/power/b.cpp", "namespace ergotune {\nchar brace = '{';\nnamespace {\nstruct Pair {};\n}\nstruct Inner {};\n}\n");
  put("src/device/c.cpp", "namespace ergotune::other {\nenum class Pair { one };\nclass Later {};\n}\n");
  put("tests/power/one.cpp", "struct Mine {};\n");
  put("tests/device/two.cpp", "struct Mine {};\n");
  EXPECT_EQ(complaints("check-names"), "");
  put("src/device/d.hpp", "namespace ergotune {\nenum class Pair : char { one };\n}\n");
  put("tests/power/three.hpp", "struct Mine final : Other {\n};\n");
  const std::string out = complaints("check-names");
  EXPECT_THAT(out, HasSubstr("ergotune::Pair is defined in include/ergotune/power/a.hpp and src/device/d.hpp"));
  EXPECT_THAT(out, HasSubstr("Mine is defined in tests/power/one.cpp and tests/power/three.hpp"));
}

TEST_F(HouseTest, WhatIsInOrderPasses) {
  put("src/power/a.cpp", "#include <fmt/format.h>\n#include \"base/x.hpp\"\n#include \"power/a.hpp\"\n");
  put("include/ergotune/power/a.hpp", "#include <vector>\n#include \"ergotune/base/x.hpp\"\n");
  put("src/helper/main.cpp", "#include \"power/a.hpp\"\n#include \"helper/b.hpp\"\n");
  put("src/cli/main.cpp", "#include \"device/a.hpp\"\n");
  EXPECT_EQ(complaints("check-includes"), "");
}

TEST_F(HouseTest, AnIncludeThatPointsUpwardsIsFoundAlsoInAHeaderThatNobodyCompiles) {
  put("src/base/a.cpp", "// a comment\n#include \"power/b.hpp\"\n");
  put("include/ergotune/base/only.hpp", "#pragma once\n#  include \"ergotune/power/b.hpp\"\n");
  const std::string out = complaints("check-includes");
  EXPECT_THAT(out, HasSubstr("src/base/a.cpp:2: base may not include from power"));
  EXPECT_THAT(out, HasSubstr("include/ergotune/base/only.hpp:2: base may not include from power"));
}

TEST_F(HouseTest, ALayerIncludesOnlyFromThoseThatItNames) {
  put("src/device/a.cpp", "#include \"power/b.hpp\"\n");
  put("src/helper/main.cpp", "#include \"ergotune/device/device.hpp\"\n");
  const std::string out = complaints("check-includes");
  EXPECT_THAT(out, HasSubstr("device may not include from power"));
  EXPECT_THAT(out, HasSubstr("helper may not include from device"));
}

TEST_F(HouseTest, TheListOfLayersItselfPointsDownwards) {
  put("src/CMakeLists.txt",
      "ergotune_layer(base USES power)\nergotune_layer(power)\nergotune_layer(device)\n");
  EXPECT_THAT(complaints("check-includes"), HasSubstr("base uses power, which does not stand above it"));
  put("src/attic/a.cpp", "");
  EXPECT_THAT(complaints("check-includes"), HasSubstr("src/attic: this folder is no layer"));
}

TEST_F(HouseTest, PublicHeadersAreLight) {
  put("include/ergotune/base/a.hpp",
      "#include <nlohmann/json_fwd.hpp>\n#include <map>\n#include <nlohmann/json.hpp>\n#include "
      "<toml++/toml.h>\n"
      "#include <Eigen/Dense>\n#include \"base/private.hpp\"\n");
  const std::string out = complaints("check-includes");
  EXPECT_THAT(out, Not(HasSubstr("a.hpp:1:")));
  EXPECT_THAT(out, Not(HasSubstr("a.hpp:2:")));
  for (const char* line : {"a.hpp:3: nlohmann/json.hpp is too heavy", "a.hpp:4: toml++", "a.hpp:5: Eigen",
                           "a.hpp:6: a public header includes base/private.hpp, which is not installed"})
    EXPECT_THAT(out, HasSubstr(line));
}

TEST_F(HouseTest, VendorsHeadersAreNowhere) {
  put("src/power/a.cpp", "#include <nvml.h>\n");
  put("src/device/a.cpp",
      "#include <CL/cl.h>\n#include <cuda_runtime.h>\n#include \"device/cuda_api.hpp\"\n");
  const std::string out = complaints("check-includes");
  EXPECT_THAT(out, HasSubstr("src/power/a.cpp:1: nvml.h is a vendor's header"));
  EXPECT_THAT(out, HasSubstr("src/device/a.cpp:1: CL/cl.h is a vendor's header"));
  EXPECT_THAT(out, HasSubstr("src/device/a.cpp:2: cuda_runtime.h is a vendor's header"));
  EXPECT_THAT(out, Not(HasSubstr("a.cpp:3")));
}

std::string lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "  if (x) { y(\"}\"); }  // {\n";
  return text;
}

TEST_F(HouseTest, FunctionsFitOnAScreen) {
  const std::string head =
      "#define OPEN {\nnamespace a {\nstruct B : C<int(int)> {\n  B() : x_{1},\n        y_(2) {\n";
  put("src/base/fits.cpp", head + lines(67) + "  }\n};\nvoid f() {\n" + lines(68) + "}\n}  // namespace a\n");
  std::filesystem::create_directories(root / "python/src");
  EXPECT_EQ(complaints("check-lengths").find("fits"), std::string::npos);
  put("src/base/long.cpp",
      "namespace a {\nint before() { return 1; }\n\ntemplate <class T>\nvoid f(T t,\n       int u) const "
      "{\n" +
          lines(69) + "}\nvoid g() {\n  const auto h = [](int x) {\n" + lines(67) +
          "  };\n}\nconst int table[] = {\n" + lines(100) + "};\n}\n");
  const std::string out = complaints("check-lengths");
  EXPECT_THAT(out, HasSubstr("src/base/long.cpp:5: f has 72 lines"));
  EXPECT_THAT(out, HasSubstr("src/base/long.cpp:77: g has 71 lines"));
  EXPECT_THAT(out, Not(HasSubstr("table")));
  EXPECT_THAT(out, Not(HasSubstr("before")));
}

TEST_F(HouseTest, FilesStayBelowFourHundredLines) {
  put("src/base/long.hpp", std::string(401, '\n'));
  put("src/base/fits.hpp", std::string(400, '\n'));
  const std::string out = complaints("check-lengths");
  EXPECT_THAT(out, HasSubstr("src/base/long.hpp: 401 lines"));
  EXPECT_THAT(out, Not(HasSubstr("fits")));
}

}  // namespace
}  // namespace ergotune
