// Mistakes that a demanding new user makes, and what is said of them (docs/measurements/new-user-2026-11-22.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

using testing::HasSubstr;

// The store must not be opened in the place of standard output.
TEST(Mistakes, ClosedStandardStreamsHurtNothing) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(2));
  ProcessOptions options;
  options.folder = folder.path().string();
  const auto result = run_process(
      {"/bin/sh", "-c", ergotune_program() + " tune p.toml --device host -q --no-confirm <&- >&- 2>&-"}, options);
  EXPECT_EQ(result.exit_code, 1) << "its answer went nowhere, signal " << result.signal;
  EXPECT_EQ(integrity(folder.path() / "ergotune.db"), "ok");
  EXPECT_EQ(stored_rows(folder.path() / "ergotune.db").size(), 2u);
}

TEST(Mistakes, ACompilerThatLacksItsPartsIsNoConfigurationsFault) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(2));
  ProcessOptions options;
  options.folder = folder.path().string();
  const std::vector<std::string> tune{ergotune_program(), "tune", "p.toml", "--device", "host", "-q", "--no-confirm"};
  std::vector<std::string> bare{"/usr/bin/env", "-i", "ERGOTUNE_DEVICE_LOCK=off"};
  bare.insert(bare.end(), tune.begin(), tune.end());
  EXPECT_EQ(run_process(bare, options).exit_code, 0) << "without a PATH the compiler is found all the same";
  std::filesystem::remove(folder.path() / "ergotune.db");
  folder.write("half-cc",
               "#!/bin/sh\n[ \"$1\" = --version ] && { echo half 1; exit; }\n"
               "echo \"cc: fatal error: cannot execute 'cc1': execvp: No such file or directory\" >&2\nexit 1\n");
  std::filesystem::permissions(folder.path() / "half-cc", std::filesystem::perms::owner_all);
  options.environment["CC"] = (folder.path() / "half-cc").string();
  EXPECT_EQ(run_process(tune, options).exit_code, 2);
  EXPECT_TRUE(stored_rows(folder.path() / "ergotune.db").empty());
}

TEST(Mistakes, WhatIsNoProblemFileIsCalledByItsName) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(2));
  ASSERT_EQ(ergotune(folder, {"tune", "p.toml", "--device", "host", "-q"}).exit_code, 0);
  folder.write("utf16.toml", "\xff\xfe[\x01");
  folder.write("page.toml", "<!DOCTYPE html>\n");
  folder.write("packed.toml", "\x1f\x8b\x08");
  for (const auto& [file, words] : {std::pair<std::string, std::string>{"ergotune.db", "this is a store of results"},
                                    {"utf16.toml", "this is UTF-16; save the problem file as UTF-8"},
                                    {"page.toml", "this is a page for a browser"},
                                    {"packed.toml", "this is a compressed file; unpack it"}}) {
    const auto result = ergotune(folder, {"tune", file, "--device", "host"});
    EXPECT_EQ(result.exit_code, 2) << file;
    EXPECT_THAT(result.err, HasSubstr(file + ": " + words));
  }
  EXPECT_THAT(ergotune(folder, {"show", "p.toml"}).err, HasSubstr("a problem file is for tune"));
}

// With --quiet nothing was said before, and one of the notes is the reason.
TEST(Mistakes, ASourceInPlaceOfAProblemFileLeadsToInit) {
  TemporaryFolder folder;
  folder.write("k.cu", "// a kernel\n__global__ void k(float* x) { x[threadIdx.x] = 1; }\n");
  const auto result = ergotune(folder, {"tune", "k.cu"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("ergotune init k.cu"));
}

TEST(Mistakes, SeveralConstantsInOneSetAreRefusedBeforeAnythingRuns) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(2));
  const auto result = ergotune(folder, {"tune", "p.toml", "--device", "host", "--set", "N=1,M=2"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("M=2"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "ergotune.db"));
}

TEST(Mistakes, AWinnerThatWasNotConfirmedIsMarked) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(2));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"tune", "p.toml", "--device", "host", "--no-confirm"}, {"show", "ergotune.db"}}) {
    const auto result = ergotune(folder, words);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("not confirmed")) << words.front();
  }
}

TEST(Mistakes, EveryValueThatWasNotConfirmedHasTheOneThatIsExpected) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(14));
  ASSERT_EQ(ergotune(folder, {"tune", "p.toml", "--device", "host", "-q"}).exit_code, 0);
  const auto document = json_of(ergotune(folder, {"show", "--json", "--top", "14"}));
  ASSERT_GT(document["best"]["confirmation_repeats"], 0);
  int not_confirmed = 0;
  for (const auto& row : document["top"]) {
    EXPECT_EQ(row.contains("unconfirmed"), row["confirmation_repeats"] == 0) << row;
    not_confirmed += row.contains("unconfirmed");
  }
  ASSERT_GT(not_confirmed, 0) << "no more than ten are confirmed";
  const auto table = ergotune(folder, {"show", "--top", "14"}).out;
  int rows = 0;
  for (std::size_t at = 0; (at = table.find("  no, ", at)) != std::string::npos; ++at) ++rows;
  EXPECT_EQ(rows, not_confirmed) << table;
}

TEST(Mistakes, WhenNothingWorksTheNotesAreSaidAgain) {
  TemporaryFolder folder;
  std::string text = counting_problem(2);
  text.replace(text.find("turn"), 4, "n");
  text.replace(text.find("1000 * turn"), 11, "1000");
  folder.write("p.toml", text);
  const auto result = ergotune(folder, {"tune", "p.toml", "--device", "host", "-q", "--no-store"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("kernel:2:15: \"n\""));
}

// -o is the output of other verbs, and o the first letter of --objective.
TEST(Mistakes, AShortOptionThatIsAbsentNamesTheLongOnesOfThatLetter) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(2));
  ASSERT_EQ(ergotune(folder, {"tune", "p.toml", "--device", "host", "-q"}).exit_code, 0);
  const auto before = stored_rows(folder.path() / "ergotune.db").size();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"tune", "p.toml", "-o", "energy"}, {"tune", "-o", "energy", "p.toml"}}) {
    const auto result = ergotune(folder, words);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("--objective"));
  }
  EXPECT_EQ(stored_rows(folder.path() / "ergotune.db").size(), before);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "energy"));
}

}  // namespace
}  // namespace ergotune::test
