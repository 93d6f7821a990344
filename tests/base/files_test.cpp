#include "base/files.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace ergotune {
namespace {

class FilesTest : public ::testing::Test {
 protected:
  FilesTest() { std::filesystem::create_directories(folder); }
  ~FilesTest() override { std::filesystem::remove_all(folder); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("ergotune-files-" + std::to_string(::getpid()));
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

}  // namespace
}  // namespace ergotune
