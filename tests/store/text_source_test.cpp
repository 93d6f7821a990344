// Files as text, whole or piece by piece, compressed or not.
#include "store/text_source.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include "store/written_files.hpp"

namespace ergotune {
namespace {

class Text : public WrittenFiles {};

std::string letters(std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i * 31 % 26);
  return text;
}

TEST_F(Text, AFileOfAnyLengthIsReadWhole) {
  constexpr std::size_t kPiece = 256 * 1024;  // as much as is asked for at once
  for (const std::size_t size :
       {std::size_t(0), std::size_t(1), kPiece - 1, kPiece, kPiece + 1, 2 * kPiece, 3 * kPiece + 7}) {
    const std::string text = letters(size);
    EXPECT_TRUE(read_all(write("plain", text)) == text) << size;
    const auto packed = folder_.path() / "packed.gz";
    gzFile file = gzopen(packed.c_str(), "wb1");
    gzwrite(file, text.data(), static_cast<unsigned>(size));
    gzclose(file);
    EXPECT_TRUE(read_all(packed) == text) << size;
  }
}

TEST_F(Text, PiecesFollowEachOtherUntilNothingIsLeft) {
  TextSource source(write("t", "abcdefghij"));
  char buffer[5] = "####";
  EXPECT_EQ(source.read(buffer, 3), 3u);
  EXPECT_EQ(std::string(buffer), "abc#") << "no byte more than was asked for";
  EXPECT_EQ(source.read(buffer, 4), 4u);
  EXPECT_EQ(std::string(buffer), "defg");
  EXPECT_EQ(source.read(buffer, 4), 3u);
  EXPECT_EQ(std::string(buffer, 3), "hij");
  EXPECT_EQ(source.read(buffer, 4), 0u);
}

TEST_F(Text, WhatIsNoFileIsSaid) {
  const std::string folder = folder_.path().string();
  EXPECT_EQ(complaint_about([&] { TextSource source(folder_.path()); }),
            folder + ": this is a folder, not a file");
  EXPECT_EQ(complaint_about([&] { TextSource source(folder_.path() / "none"); }),
            folder + "/none: the file does not exist or cannot be read");
}

}  // namespace
}  // namespace ergotune
