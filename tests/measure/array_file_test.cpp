// Files of array elements: raw ones, and NumPy's.
#include "measure/buffers/arguments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/npy.hpp"
#include "ergotune/error.hpp"

namespace ergotune {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct ArrayFiles : testing::Test {
  const std::vector<float> numbers{1.5f, -2.0f, 3.25f};
  std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / ("arrays" + std::to_string(::getpid()));
  ArrayFiles() { std::filesystem::create_directories(folder); }
  ~ArrayFiles() override { std::filesystem::remove_all(folder); }
  std::string elements() const { return {reinterpret_cast<const char*>(numbers.data()), 12}; }
  std::filesystem::path write(const char* name, const std::string& bytes) const {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return folder / name;
  }
  /// NumPy's file of these elements, with something else in its header.
  std::filesystem::path npy(const std::string& descr, const std::string& order = "False",
                            const std::string& shape = "(3,)") const {
    std::string header = "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
    header.resize(117, ' ');
    header += "\n";
    return write("x.npy",
                 std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header + elements());
  }
  std::vector<float> read(const std::filesystem::path& file, ElementType type = ElementType::float32) const {
    const auto bytes = read_array_file(file, type, 12, "fills argument \"a\"");
    std::vector<float> values(3);
    std::memcpy(values.data(), bytes.data(), 12);
    return values;
  }
  std::string complaint(const std::filesystem::path& file, ElementType type = ElementType::float32) const {
    try {
      read(file, type);
    } catch (const UserError& error) {
      return error.what();
    }
    return "none";
  }
};

TEST_F(ArrayFiles, AreRawElementsOrNumPys) {
  EXPECT_EQ(read(write("x.bin", elements())), numbers);
  EXPECT_EQ(read(write("x.npy", npy_header("<f4", 3) + elements())), numbers);
  EXPECT_EQ(read(npy("<f4")), numbers);
  EXPECT_EQ(read(npy("|f4")), numbers);
}

TEST_F(ArrayFiles, ThatAreNotThereOrOfAnotherSizeAreNamed) {
  EXPECT_THAT(complaint(folder / "none.bin"), HasSubstr("none.bin"));
  EXPECT_THAT(complaint(write("x.bin", elements() + "1")), HasSubstr("13 bytes"));
  EXPECT_THAT(complaint(write("x.npy", npy_header("<f4", 3) + elements().substr(1))), HasSubstr("has 11 bytes"));
  EXPECT_THAT(complaint(write("x.npy", elements())), HasSubstr("is not a complete .npy file"));
}

TEST_F(ArrayFiles, OfNumPyMustHaveTheArgumentsType) {
  EXPECT_THAT(complaint(npy("<i4")), AllOf(HasSubstr("NumPy's type <i4"), HasSubstr("float32 (<f4)")));
  EXPECT_THAT(complaint(npy("<f8")), HasSubstr("NumPy's type <f8"));
  EXPECT_THAT(complaint(npy(">f4")), HasSubstr("NumPy's type >f4")) << "the other order of bytes";
  EXPECT_EQ(complaint(npy("<i4"), ElementType::int32), "none");
}

TEST_F(ArrayFiles, InFortransOrderAreRefusedWhereThatMatters) {
  EXPECT_EQ(complaint(npy("<f4", "True")), "none") << "one dimension has no order";
  EXPECT_THAT(complaint(npy("<f4", "True", "(1, 3)")), HasSubstr("in Fortran's order"));
  EXPECT_EQ(complaint(npy("<f4", "False", "(1, 3)")), "none");
}

}  // namespace
}  // namespace ergotune
