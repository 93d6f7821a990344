// Tests of what files say: written into a folder of their own, and read.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "ergotune/error.hpp"
#include "store/formats/recording.hpp"
#include "temporary_folder.hpp"

namespace ergotune {

/// What somebody is told who does this; of a place the line may be known, the column never is.
template <class Do>
std::string complaint_about(Do&& what) {
  try {
    what();
  } catch (const UserError& error) {
    EXPECT_EQ(error.place().column, 0) << error.what();
    return error.what();
  }
  return "none";
}

class WrittenFiles : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
    return folder_.path() / name;
  }
  Recording read(const std::string& name, const std::string& text) { return load_recording(write(name, text)); }
  /// What is said about the file, without the folder's name.
  std::string complaint(const std::string& name, const std::string& text) {
    const std::string said = complaint_about([&] { read(name, text); }), folder = folder_.path().string() + "/";
    return said.starts_with(folder) ? said.substr(folder.size()) : said;
  }
  const TemporaryFolder folder_;
};

}  // namespace ergotune
