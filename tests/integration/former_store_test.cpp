// A store that ergotune 0.1 wrote (schema 1) opens, shows and resumes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

const std::filesystem::path kFormer = ERGOTUNE_SOURCE_DIR "/tests/data/former";

/// A copy to write to, under the name that the problem had then: it was part of the identity.
struct Former : TemporaryFolder {
  Former() {
    for (const char* name : {"problem.toml", "store.db"}) std::filesystem::copy_file(kFormer / name, path() / name);
  }
};

TEST(FormerStore, IsShownWithoutBeingChanged) {
  Former folder;
  std::filesystem::permissions(folder.path() / "store.db", std::filesystem::perms(0444));
  const auto document = json_of(ergotune(folder, {"show", "store.db", "--json"}));
  EXPECT_EQ(document["rows"], 5);
  EXPECT_EQ(document["objective"]["direction"], "max") << "the problem as it was stored knows it";
}

TEST(FormerStore, IsGoneOnWithAndItsMetricsAreComputedNow) {
  Former folder;
  const auto tuned = json_of(ergotune(
      folder, {"tune", "problem.toml", "--device", "sim:a100", "--store", "store.db", "--budget", "8", "--json", "--quiet"}));
  EXPECT_EQ(tuned["resumed"], 5);
  EXPECT_EQ(tuned["evaluated"], 3);
  const auto shown = json_of(ergotune(folder, {"show", "store.db", "--json"}));
  EXPECT_EQ(shown["rows"], 8);
  EXPECT_EQ(shown["best"]["configuration"], tuned["best"]["configuration"]);
  for (const auto& row : shown["top"]) EXPECT_TRUE(row["metrics"].contains("rate")) << row;
  EXPECT_EQ(shown["sessions"].size(), 1u);
  EXPECT_EQ(integrity(folder.path() / "store.db"), "ok");
}

}  // namespace
}  // namespace ergotune::test
