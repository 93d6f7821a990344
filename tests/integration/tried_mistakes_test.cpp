// Mistakes that a demanding new user makes, and what is said of them (docs/measurements/new-user-2026-11-22.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

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
  const auto result = run_process({"/bin/sh", "-c", ergotune_program() + " tune p.toml --device host -q --no-confirm <&- >&- 2>&-"}, options);
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
  folder.write("half-cc", "#!/bin/sh\n[ \"$1\" = --version ] && { echo half 1; exit; }\n"
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

TEST(Mistakes, AnOptionThatIsNotThereHasANearestOne) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(2));
  EXPECT_THAT(ergotune(folder, {"tune", "p.toml", "--bugdet", "3"}).err,
              HasSubstr("there is no option \"--bugdet\" (did you mean \"--budget\"?)"));
  EXPECT_THAT(ergotune(folder, {"tune", "p.toml", "q.toml"}).err, HasSubstr("not expected: q.toml"));
}

TEST(Mistakes, ResultsAreNotRankedByWhatNoneOfThemHas) {
  TemporaryFolder folder;
  folder.write("r.csv", "bx,status,time\n1,ok,0.2\n2,ok,0.1\n3,runtime_error,\n");
  for (const std::string verb : {"show", "report"}) {
    const auto result = ergotune(folder, {verb, "r.csv", "--objective", "gflops"});
    EXPECT_EQ(result.exit_code, 2) << verb;
    EXPECT_THAT(result.err, HasSubstr("cannot be ranked by \"gflops\": none of them has \"gflops\"; they have time"));
    EXPECT_EQ(ergotune(folder, {verb, "r.csv", "--objective", "2 * time"}).exit_code, 0) << verb;
  }
  EXPECT_THAT(ergotune(folder, {"report", "nothere.db"}).err, HasSubstr("there is no store here"));
}

TEST(Mistakes, WordsNameWhatWouldBeRight) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(2));
  folder.write("r.csv", "bx,status,time\n1,ok,0.2\n");
  const auto says = [&](const std::vector<std::string>& arguments, const std::string& words) {
    const auto result = ergotune(folder, arguments);
    EXPECT_EQ(result.exit_code, 2) << words;
    EXPECT_THAT(result.err, HasSubstr(words));
  };
  says({"measure", "p.toml", "--device", "host", "-c", R"({"turn": "2"})"}, "turn has no value '2', it has 1, 2");
  says({"clocks"}, "One of status, restore");
  says({}, "One of devices, space, tune");
  says({"score", "--data", "r.csv", "--repeats", "0"}, "must be a number greater than 0, not 0");
  for (const char* option : {"--precision", "--max-seconds", "--time-limit", "--at"})
    for (const char* number : {"nan", "-1", "0", "inf"}) says({"program", option, number, "--", "true"}, "must be a number greater than 0");
  says({"capture", "--most-memory", "17592186044416", "--", "true"}, "--most-memory: 17592186044416 MiB");
  says({"tune", "p.toml", "--device", "replay:"}, "replay: needs the file to replay");
}

// With --quiet nothing was said before, and one of the notes is the reason.
TEST(Mistakes, WhenNothingWorksTheNotesAreSaidAgain) {
  TemporaryFolder folder;
  std::string text = counting_problem(2);
  text.replace(text.find("turn"), 4, "n");
  text.replace(text.find("1000 * turn"), 11, "1000");
  folder.write("p.toml", text);
  const auto result = ergotune(folder, {"tune", "p.toml", "--device", "host", "-q", "--no-store"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("note: kernel:2:15: \"n\" is declared here, but it is also a parameter"));
}

}  // namespace
}  // namespace ergotune::test
