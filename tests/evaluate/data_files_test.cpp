// Arrays given in memory reach workers as files.
#include "evaluate/live/data_files.hpp"
#include "ergotune/argument.hpp"
#include "ergotune/problem.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace ergotune {
namespace {

TEST(DataFiles, LargeArraysAreFilesAsLongAsTheObjectLives) {
  std::vector<std::uint8_t> large(100'000);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::uint8_t>(i * 7);
  Problem problem;
  problem.kernel().arguments.resize(2);
  problem.kernel().arguments[0].fill = {.kind = Fill::Kind::data,
                                        .data = std::make_shared<std::vector<std::uint8_t>>(large)};
  problem.kernel().arguments[1].fill = {.kind = Fill::Kind::data,
                                        .data = std::make_shared<std::vector<std::uint8_t>>(std::size_t{16})};
  std::filesystem::path file;
  {
    DataFiles files;
    const Problem laid_out = files.lay_out(problem);
    const Fill& fill = laid_out.kernel().arguments[0].fill;
    EXPECT_EQ(fill.kind, Fill::Kind::file);
    EXPECT_EQ(fill.data, nullptr);
    file = fill.file;
    std::ifstream in(file, std::ios::binary);
    EXPECT_EQ(std::vector<std::uint8_t>(std::istreambuf_iterator<char>(in), {}), large);
    EXPECT_EQ(laid_out.kernel().arguments[1].fill.kind, Fill::Kind::data) << "small ones travel with the problem";
    EXPECT_EQ(problem.kernel().arguments[0].fill.kind, Fill::Kind::data) << "the caller's is as it was";
  }
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace ergotune
