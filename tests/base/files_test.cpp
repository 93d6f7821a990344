#include "base/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "ergotune/error.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

class FilesTest : public ::testing::Test {
 protected:
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  }
  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
};

TEST_F(FilesTest, WhatIsWrittenIsRead) {
  const std::string bytes = std::string("a\0b\n", 4) + std::string(200'000, 'x');
  EXPECT_EQ(write_file(folder / "f", bytes), 0);
  EXPECT_EQ(read_file(folder / "f"), bytes);
  EXPECT_EQ(write_file(folder / "f", ""), 0);
  EXPECT_EQ(read_file(folder / "f"), "");
  EXPECT_EQ(files(), 1u);
}

TEST_F(FilesTest, WhatCannotBeReadIsNothingWithAReason) {
  EXPECT_FALSE(read_file(folder / "missing"));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(read_file(folder));
  EXPECT_EQ(errno, EISDIR);
}

TEST_F(FilesTest, AFailureLeavesWhatWasThere) {
  std::filesystem::create_directories(folder / "taken" / "inside");
  EXPECT_NE(write_file(folder / "taken", "text"), 0) << "a folder is in its place";
  EXPECT_EQ(write_file(folder / "no" / "such" / "folder", "text"), ENOENT);
  EXPECT_EQ(files(), 1u) << "nothing half-written stays behind";
}

TEST_F(FilesTest, LinksStayAndWhatIsNoFileIsWrittenTo) {
  ASSERT_EQ(write_file(folder / "f", "old"), 0);
  std::filesystem::create_symlink("f", folder / "link");
  EXPECT_EQ(write_file(folder / "link", "new"), 0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "f"), "new");
  EXPECT_EQ(write_file("/dev/full", "text"), ENOSPC);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full")) << "nothing takes its place";
}

TEST_F(FilesTest, ANamedFileThatCannotBeWrittenSaysWhy) {
  for (const auto& [file, words] :
       {std::pair<std::filesystem::path, std::string>{folder / "no" / "f", "its folder is not there"},
        {folder, "a folder has that name"},
        {"/dev/full", "No space left on device"}}) {
    try {
      write_named_file(file, "text");
      ADD_FAILURE() << file;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      EXPECT_TRUE(std::string(error.what()).starts_with(file.string()));
    }
  }
}

// Of killed processes: by name and age, also where the folder is not there.
TEST_F(FilesTest, LeftBehindIsWhatNobodyWroteToForSoLong) {
  const auto old = [&](const std::filesystem::path& path, int hours) {
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours));
    return path;
  };
  for (const char* name : {"ours-a", "ours-young", "theirs-ours-c"}) ASSERT_EQ(write_file(folder / name, "x"), 0);
  std::filesystem::create_directory(folder / "ours-b");
  old(folder / "ours-a", 25);
  old(folder / "ours-b", 30);
  old(folder / "ours-young", 23);
  old(folder / "theirs-ours-c", 100);
  EXPECT_THAT(left_behind(folder, "ours-", std::chrono::hours(24)),
              testing::UnorderedElementsAre(folder / "ours-a", folder / "ours-b"));
  EXPECT_THAT(left_behind(folder / "missing", "", std::chrono::hours(0)), testing::IsEmpty());
  EXPECT_THAT(left_behind(folder / "ours-a", "", std::chrono::hours(0)), testing::IsEmpty()) << "no folder";
}

}  // namespace
}  // namespace ergotune
