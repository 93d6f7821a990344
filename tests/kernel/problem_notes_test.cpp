#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "device/backend.hpp"
#include "ergotune/problem_file.hpp"
#include "kernel/problem_notes.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Every kernel among the examples compiles, so nothing may be said about it.
TEST(SourceNotes, TheExamplesHaveNone) {
  int seen = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(ERGOTUNE_SOURCE_DIR) / "examples")) {
    if (entry.path().extension() != ".toml") continue;
    const Problem problem = load_problem(entry.path());
    for (const char* backend : {"cuda", "hip", "opencl", "host"}) {
      const auto has_source = [&](const Kernel& kernel) { return has_source_for(kernel, backend); };
      if (!std::ranges::all_of(problem.kernels, has_source)) continue;
      EXPECT_THAT(source_notes(problem, problem.constants, backend), IsEmpty()) << entry.path();
    }
    ++seen;
  }
  EXPECT_GT(seen, 5);
}

TEST(SourceNotes, AreOfAReferenceOnTheHostToo) {
  const Problem problem = parse_problem(
      "[constants]\nwidth = 8\n[parameters]\nTILE = [1, 2]\n[kernel]\nfunction = 'f'\nlaunch = { grid = 1, block = 1 "
      "}\n[kernel.source.opencl]\n"
      "text = 'kernel void f() {}'\n[verification.host_function]\nfunction = "
      "'g'\n[verification.host_function.source.c]\n"
      "text = 'void g() { int TILE = 3, width = TILE; }'\n",
      "p.toml");
  EXPECT_EQ(source_notes(problem, problem.constants, "opencl").size(), 2u);
}

TEST(SourceNotes, NameArgumentsInAnotherOrderThanTheSources) {
  const auto notes = [](const std::string& first, const std::string& second) {
    const Problem problem = parse_problem(
        "[parameters]\nTILE = [1]\n[kernel]\nfunction = 'f<{{TILE}}>'\nlaunch = { grid = 1, block = 1 }\narguments = "
        "[{ name = '" +
            first + "', type = 'int32', count = 4 }, { name = '" + second +
            "', type = 'int32', count = 4 }]\n"
            "[kernel.source.cuda]\ntext = 'template <int T> __global__ void f(const int* from, int* to) {}'\n",
        "p.toml");
    return source_notes(problem, problem.constants, "cuda").size();
  };
  EXPECT_EQ(notes("from", "to"), 0u);
  EXPECT_EQ(notes("to", "from"), 1u);
  EXPECT_EQ(notes("x", "y"), 0u) << "names of the problem's own";
}

TEST(SourceNotes, NameVariablesOfTheDeviceThatNothingFills) {
  const auto notes = [](const std::string& body) {
    const Problem problem = parse_problem(
        "[parameters]\nTILE = [1]\n[kernel]\nfunction = 'f'\nlaunch = { grid = 1, block = 1 }\n"
        "[kernel.source.cuda]\ntext = '__device__ float table[8]; __global__ void f(float* to) { " +
            body + " }'\n",
        "p.toml");
    return source_notes(problem, problem.constants, "cuda").size();
  };
  EXPECT_EQ(notes("to[0] = table[1];"), 1u);
  EXPECT_EQ(notes("float& own = table[1]; own = 2; to[0] = own;"), 0u);
  EXPECT_EQ(notes("float* own = table; own[1] = 2; to[0] = own[1];"), 0u);
  EXPECT_EQ(notes("table[1] = 2; to[0] = table[1];"), 0u);
}

/// A problem whose kernel f has this source and launch.
Problem problem_of(const std::string& language, const std::string& source, const std::string& kernel = "") {
  return parse_problem("[constants]\nN = 64\n[parameters]\nTILE = [1, 2]\n[kernel]\nfunction = 'f'\n" + kernel +
                           "[kernel.source." + language + "]\ntext = \"\"\"" + source + "\"\"\"\n",
                       "p.toml");
}

TEST(SourceNotes, NameMembersOfOtherTypesThanTheSources) {
  const auto notes = [](const std::string& types) {
    std::string fields;
    for (const std::string& type : {std::string("float64"), types, std::string("float64")})
      fields += "{ name = 'm', type = '" + type + "', value = 0 }, ";
    const Problem problem = problem_of(
        "cuda", "struct Box { double dx, dy, from[1]; }; __global__ void f(const Box box) {}",
        "launch = { grid = 1, block = 1 }\narguments = [{ name = 'box', type = 'Box', fields = [" + fields + "] }]\n");
    return source_notes(problem, problem.constants, "cuda").size();
  };
  EXPECT_EQ(notes("float64"), 0u);
  EXPECT_EQ(notes("float32"), 1u);
  EXPECT_EQ(notes("int64"), 1u);
}

TEST(SourceNotes, NameMacrosThatTheSourceDefinesAgain) {
  const auto notes = [](const std::string& source) {
    const Problem problem = problem_of("opencl", source + "\nkernel void f() {}", "launch = { grid = 1, block = 1 }\n");
    return source_notes(problem, problem.constants, "opencl");
  };
  EXPECT_THAT(notes("// sizes\n#define TILE 16"), ElementsAre(HasSubstr("kernel:2: ")));
  EXPECT_EQ(notes("#undef TILE\n  # define TILE(x) x").size(), 1u);
  EXPECT_EQ(notes("#define N 32").size(), 1u);
  EXPECT_THAT(notes("#define N 64"), IsEmpty()) << "the same value";
  EXPECT_THAT(notes("#ifndef TILE\n#define TILE 16\n#endif"), IsEmpty());
  EXPECT_THAT(notes("#if !defined(TILE)\n#define TILE 16\n#endif"), IsEmpty());
  EXPECT_THAT(notes("#ifdef SMALL\n#define TILE 16\n#endif\n// #define TILE 8"), IsEmpty());
  EXPECT_THAT(notes("#define TILES TILE"), IsEmpty());
}

TEST(SourceNotes, NameDynamicSharedMemoryThatTheLaunchDoesNotGive) {
  const auto notes = [](const std::string& source, const std::string& launch = "") {
    const Problem problem = problem_of("cuda", source, "launch = { grid = 1, block = 1" + launch + " }\n");
    return source_notes(problem, problem.constants, "cuda").size();
  };
  const std::string own = "__global__ void f() { extern __shared__ float tile[]; tile[0] = 1; }";
  EXPECT_EQ(notes(own), 1u);
  EXPECT_EQ(notes(own, ", shared_memory_bytes = '4 * TILE'"), 0u);
  EXPECT_EQ(notes("extern __shared__ __align__(16) char all[];\n__global__ void f() { all[0] = 1; }"), 1u);
  EXPECT_EQ(notes("extern __shared__ char all[];\n__global__ void f() {}\n__global__ void g() { all[0] = 1; }"), 0u)
      << "of another kernel";
  EXPECT_EQ(notes("__global__ void f() { __shared__ float tile[TILE]; tile[0] = 1; }"), 0u);
}

TEST(SourceNotes, NameOpenMpDirectivesThatNoOptionEnables) {
  const auto notes = [](const std::string& language, const std::string& source, const std::string& options = "") {
    const Problem problem = problem_of(language, source, options);
    return source_notes(problem, problem.constants, "host").size();
  };
  const std::string loop = "void f() {\n  # pragma omp parallel for\n  for (int i = 0; i < N; ++i);\n}";
  EXPECT_EQ(notes("c", loop), 1u);
  EXPECT_EQ(notes("c", loop, "options = ['-O2']\n"), 1u);
  EXPECT_EQ(notes("cpp", loop, "options = ['-O2', '-fopenmp']\n"), 0u);
  EXPECT_EQ(notes("c", "void f() {\n  // #pragma omp parallel\n}"), 0u);
  EXPECT_EQ(notes("fortran", "subroutine f()\n!$OMP parallel\n!$omp end parallel\nend subroutine"), 1u);
}

TEST(NoteOfDefault, NamesTheRestrictionThatExcludesIt) {
  const auto note = [](const std::string& tile) {
    const Problem problem = parse_problem(
        "restrictions = ['N % TILE == 0', 'TILE * WORK <= LIMIT']\n[constants]\nN = 64\n"
        "LIMIT = 32\n[parameters]\nWORK = [1, 2, 4]\nTILE = " +
            tile + "\n[kernel]\nfunction = 'f'\n[kernel.source.c]\ntext = ''\n",
        "p.toml");
    return note_of_default(problem, problem.build_space(problem.constants), problem.constants);
  };
  EXPECT_THAT(note("{ values = [8, 64], default = 64 }"), HasSubstr("TILE * WORK <= LIMIT"));
  EXPECT_EQ(note("{ values = [8, 64], default = 8 }"), "");
  EXPECT_EQ(note("[64, 8]"), "") << "no default was chosen";
}

TEST(NoteOfDefault, LeavesOutADefaultThatIsNoValueOfTheParameter) {
  Problem problem = parse_problem(
      "restrictions = ['TILE <= 32']\n[parameters]\nTILE = [8, 64]\n[kernel]\nfunction = 'f'\n[kernel.source.c]\ntext "
      "= ''\n",
      "p.toml");
  problem.parameters.front().default_value = Value("none");  // as Kernel Tuner's layer does
  EXPECT_EQ(note_of_default(problem, problem.build_space(problem.constants), problem.constants), "");
}

}  // namespace
}  // namespace ergotune
