// What makes another session, and what does not.
#include "problem/document/problem_document.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "base/files.hpp"
#include "ergotune/problem_file.hpp"
#include "problem/files/source_text.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

constexpr const char* kProblem = R"toml(
name = "stencil"
description = "five points"
restrictions = ["BX * UNROLL <= 64", "BX % 16 == 0"]
[constants]
N = 1024
EPS = 0.001
[parameters]
BX = [16, 32, 64]
UNROLL = { values = [1, 2], default = 2 }
[kernel]
function = "stencil"
source = { c = "stencil.c", fortran = "stencil.f90" }
include_folders = ["shared"]
arguments = [
  { name = "in", type = "float32", count = "N * 2", fill = { file = "in.bin" } },
  { name = "out", type = "float32", count = "N", access = "write" },
  { name = "n", type = "int32", value = "N" },
]
[kernel.launch]
grid = ["N / BX"]
block = ["BX"]
[kernel.options]
c = ["-O2", "-DU={{UNROLL}}"]
[verification]
absolute_tolerance = 1e-3
files = { out = "out.bin" }
[metrics]
rate = "N / time"
[execution]
core_clock_mhz = { from = 600, to = 900 }
[tune]
objective = "energy"
device = "host"
)toml";

/// A problem with all its files in a folder of its own.
class IdentityTest : public ::testing::Test {
 protected:
  IdentityTest() { make(folder, "stencil.toml"); }

  static void put(const std::filesystem::path& file, const std::string& text) {
    std::filesystem::create_directories(file.parent_path());
    ASSERT_EQ(write_file(file, text), 0) << file;
  }
  void make(const std::filesystem::path& where, const std::string& name) {
    put(where / name, kProblem);
    put(where / "stencil.c",
        "#include \"inner.h\"\n#include \"outer.h\"\nvoid stencil(float* in, float* out, int n) {}\n");
    put(where / "stencil.f90", "subroutine stencil()\nend\n");
    put(where / "inner.h", "#include \"deeper.h\"\n");
    put(where / "deeper.h", "#define DEPTH 2\n");
    put(where / "shared/outer.h", "#define OUTER 1\n");
    put(where / "in.bin", "0123");
    put(where / "out.bin", "4567");
  }
  std::string now() const { return identity_of(load_problem(folder / "stencil.toml")); }
  /// The problem's text with one part put in the place of another.
  std::string with(const std::string& old, const std::string& fresh) const {
    std::string text = kProblem;
    const auto at = text.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    return identity_of(parse_problem(text.replace(at, old.size(), fresh), folder / "stencil.toml"));
  }

  const TemporaryFolder temporary;
  const std::filesystem::path root = temporary.path();
  const std::filesystem::path folder = root / "a";
};

TEST_F(IdentityTest, FilesThatOptionsNameDetermineResults) {
  for (const std::string& option : {"-I" + (folder / "elsewhere").string(), (folder / "elsewhere/far.h").string()}) {
    std::string text = kProblem;
    text.replace(text.find("-O2"), 3, option);
    put(folder / "options.toml", text);
    put(folder / "stencil.c", "#include <far.h>\nvoid stencil(float* in, float* out, int n) {}\n");
    std::set<std::string> identities;
    for (const char* contents : {"#define FAR 1\n", "#define FAR 2\n"}) {
      put(folder / "elsewhere/far.h", contents);
      identities.insert(identity_of(load_problem(folder / "options.toml")));
    }
    EXPECT_EQ(identities.size(), 2u) << option;
  }
}

TEST_F(IdentityTest, WhereItStandsAndWhatItIsCalledDoesNotCount) {
  const std::string identity = now();
  make(root / "b with a space", "other name.toml");
  EXPECT_EQ(identity_of(load_problem(root / "b with a space/other name.toml")), identity) << "a copy elsewhere";
  EXPECT_EQ(identity_of(load_problem(root / "a/../a/./stencil.toml")), identity) << "another way to write the path";
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  EXPECT_EQ(identity_of(load_problem("stencil.toml")), identity) << "by a relative path";
  std::filesystem::current_path(before);
  for (const auto& [from, to] :
       {std::pair{"stencil.c", "renamed.c"}, {"in.bin", "inputs.raw"}, {"out.bin", "sub/outputs.raw"}}) {
    std::filesystem::create_directories(folder / "sub");
    std::filesystem::rename(folder / from, folder / to);
    EXPECT_EQ(with(from, to), identity) << from;
    std::filesystem::rename(folder / to, folder / from);
  }
  std::filesystem::rename(folder / "shared", folder / "headers");
  EXPECT_EQ(with("[\"shared\"]", "[\"headers\"]"), identity);
}

TEST_F(IdentityTest, HowItIsWrittenDoesNotCount) {
  const std::string identity = now();
  for (const auto& [old, fresh] : {
           std::pair{"[constants]", "# a comment, and more lines\n\n\n[constants]"},
           {"N = 1024\nEPS = 0.001", "EPS = 1e-3  # small\nN = 1_024"},
           {"N = 1024", "N = 0x400"},
           {"\"five points\"", "\"nine points\""},
           {"name = \"stencil\"", "name = \"another\""},
           {"name = \"stencil\"\n", ""},
           {"\"N * 2\"", "\"N*2\""},
           {"\"N * 2\"", "\"(N * 2)\""},
           {"\"BX * UNROLL <= 64\", \"BX % 16 == 0\"", "\"BX % 16 == 0\", \"BX*UNROLL <= 64\""},
           {"source = { c = \"stencil.c\", fortran = \"stencil.f90\" }",
            "source = { fortran = \"stencil.f90\", c = \"stencil.c\" }"},
       })
    EXPECT_EQ(with(old, fresh), identity) << fresh;
}

TEST_F(IdentityTest, WhatIsWantedDoesNotCount) {
  const std::string identity = now();
  for (const auto& [old, fresh] : {std::pair{"rate = \"N / time\"", "speed = \"time\""},
                                   {"objective = \"energy\"", "objective = \"max rate\""},
                                   {"device = \"host\"", "device = \"opencl\"\nseed = 7\nmin_repeats = 9"},
                                   {"[tune]", "[[plans.two]]\nname = \"x\"\nfree = [\"code\"]\n[tune]"}})
    EXPECT_EQ(with(old, fresh), identity) << fresh;
  Problem observed = load_problem(folder / "stencil.toml");
  observed.observers.push_back({"registers", {}, {}});
  EXPECT_EQ(identity_of(observed), identity);
}

TEST_F(IdentityTest, WhateverCanChangeAResultCounts) {
  const std::string identity = now();
  for (const auto& [old, fresh] : {
           std::pair{"N = 1024", "N = 1025"},
           {"N = 1024", "N = 1024.0"},  // another macro
           {"BX = [16, 32, 64]", "BX = [16, 32]"},
           {"BX = [16, 32, 64]\nUNROLL = { values = [1, 2], default = 2 }",
            "UNROLL = { values = [1, 2], default = 2 }\nBX = [16, 32, 64]"},
           {"default = 2", "default = 1"},
           {"BX % 16 == 0", "BX % 32 == 0"},
           {"function = \"stencil\"", "function = \"stencil2\""},
           {"\"N * 2\"", "\"N + 2\""},
           {"\"N * 2\"", "\"N * (2 + 1)\""},
           {"type = \"int32\"", "type = \"int64\""},
           {"access = \"write\"", "access = \"read_write\""},
           {"fill = { file = \"in.bin\" }", "fill = { random = [0, 1] }"},
           {"grid = [\"N / BX\"]", "grid = [\"N / BX + 1\"]"},
           {"\"-O2\", ", ""},
           {"1e-3", "1e-4"},
           {"to = 900", "to = 800"},
           {"type = \"int32\", value = \"N\"",
            "type = \"struct n\", fields = [{ name = \"n\", type = \"int32\", value = \"N\" }]"},
           {"type = \"int32\", value = \"N\"", "type = \"int32\", value = \"N\", when = \"BX > 16\""},
       })
    EXPECT_NE(with(old, fresh), identity) << fresh;
}

TEST_F(IdentityTest, ForeignMemoryCountsByItsContents) {
  Problem given = load_problem(folder / "stencil.toml"), foreign = given;
  std::vector<std::uint8_t> memory(17'000'000, 7);  // more than is read at once
  given.kernel().arguments[0].fill = {.kind = Fill::Kind::data,
                                      .data = std::make_shared<std::vector<std::uint8_t>>(memory)};
  auto there = std::make_shared<ExternalMemory>();
  there->bytes = memory.size();
  there->read = [&](std::span<std::uint8_t> into, std::size_t offset) {
    std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
  };
  foreign.kernel().arguments[0].fill = {.kind = Fill::Kind::data, .foreign = there};
  EXPECT_EQ(identity_of(foreign), identity_of(given));
  EXPECT_EQ(identity_of(deserialise(serialise(foreign))), identity_of(given)) << "elsewhere it is data";
  memory.back() = 8;
  EXPECT_NE(identity_of(foreign), identity_of(given));
}

TEST_F(IdentityTest, TheContentsOfEveryFileCount) {
  const std::string identity = now();
  for (const auto& [file, other] : {std::pair{"stencil.c", "#include \"inner.h\"\nvoid stencil() { int x; }\n"},
                                    {"stencil.f90", "subroutine stencil()\n!$omp parallel\nend\n"},
                                    {"inner.h", "#include \"deeper.h\"\n#define MORE\n"},
                                    {"deeper.h", "#define DEPTH 3\n"},
                                    {"shared/outer.h", "#define OUTER 2\n"},
                                    {"in.bin", "0124"},
                                    {"out.bin", "4568"}}) {
    const std::string before = *read_file(folder / file);
    put(folder / file, other);
    EXPECT_NE(now(), identity) << file;
    put(folder / file, before);
    EXPECT_EQ(now(), identity) << file;
  }
}

TEST_F(IdentityTest, CommentsInSourcesDoNotCount) {
  const std::string identity = now();
  put(folder / "stencil.c",
      "// what it does\n#include \"inner.h\"   /* first */\n\n#include \"outer.h\"\n"
      "void stencil(float* in, float* out, int n) {}\n");
  put(folder / "deeper.h", "/* deep\n down */\n#define DEPTH 2  // levels\n");
  EXPECT_EQ(now(), identity);
}

TEST_F(IdentityTest, DataInMemoryIsLikeTheSameDataInAFile) {
  Problem problem = load_problem(folder / "stencil.toml");
  auto& fill = problem.kernel().arguments[0].fill;
  fill.kind = Fill::Kind::data;
  fill.file.clear();
  fill.data = std::make_shared<std::vector<std::uint8_t>>(std::vector<std::uint8_t>{'0', '1', '2', '3'});
  EXPECT_EQ(identity_of(problem), now());
  fill.data = std::make_shared<std::vector<std::uint8_t>>(std::vector<std::uint8_t>{'0', '1', '2'});
  EXPECT_NE(identity_of(problem), now());
}

TEST_F(IdentityTest, ItSurvivesTheWayToAnotherProcess) {
  const Problem problem = load_problem(folder / "stencil.toml");
  EXPECT_EQ(identity_of(deserialise(serialise(problem))), identity_of(problem));
}

TEST(WithoutComments, LeavesTheCode) {
  for (const auto& [text, code] : {
           std::pair<std::string, std::string>{"a // b\nc", "a\nc\n"},
           {"a/*b*/c", "a c\n"},
           {"// a \\\n still a comment\nb", "b\n"},
           {"a\n\n \t\nb  \n", "a\nb\n"},
           {"s = \"// no comment\"; // one", "s = \"// no comment\";\n"},
           {"s = \"\\\"/*\"; t = \"*/\";", "s = \"\\\"/*\"; t = \"*/\";\n"},
           {"c = '\"'; // x", "c = '\"';\n"},
           {"n = 1'000'000; // x's", "n = 1'000'000;\n"},
           {"c = u8'x'; // y", "c = u8'x';\n"},
           {"#error it's /* not */ over", "#error it's   over\n"},
           {"r = R\"(// in)\"; // out", "r = R\"(// in)\";\n"},
           {"r = R\"a()\" // in)a\"; // out", "r = R\"a()\" // in)a\";\n"},
           {"#define A \\\n\nint x;", "#define A \\\n\nint x;\n"},
           {"a /* never closed", "a /* never closed\n"},
       })
    EXPECT_EQ(without_comments(text), code) << text;
  EXPECT_EQ(without_comments("r = R\"(a\n\n  // b\n)\";"), "r = R\"(a\n\n  // b\n)\";");
}

// Whatever stands there, code outside of comments is never lost and a second time changes nothing.
TEST(WithoutComments, IsStable) {
  EXPECT_TRUE(rc::check([] {
    const auto pieces = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 12));
    constexpr const char* kPieces[] = {"x", " ", "\n", "\"", "'", "\\", "/*", "*/", "//", "1", "R\"(", ")\""};
    std::string text;
    for (const int piece : pieces) text += kPieces[piece];
    const std::string once = without_comments(text);
    RC_ASSERT(std::ranges::count(once, 'x') <= std::ranges::count(text, 'x'));
    if (text.find("/*") == std::string::npos && text.find("//") == std::string::npos)
      RC_ASSERT(std::ranges::count(once, 'x') == std::ranges::count(text, 'x'));
  }));
}

}  // namespace
}  // namespace ergotune
