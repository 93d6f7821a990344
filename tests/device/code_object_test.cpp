// The note in a code object: read in full, and whatever else the bytes may be, refused in peace.
#include "device/code_object.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>
#include <nlohmann/json.hpp>

using namespace ergotune;
using Json = nlohmann::json;

namespace {

template <class T>
void put(std::string& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

/// An ELF file with one segment of notes: another's first, then the metadata.
std::string elf_with(const std::string& metadata) {
  const auto note = [](std::uint32_t type, std::string name, std::string text) {
    std::string bytes(12, '\0');
    put<std::uint32_t>(bytes, 0, static_cast<std::uint32_t>(name.size()));
    put<std::uint32_t>(bytes, 4, static_cast<std::uint32_t>(text.size()));
    put<std::uint32_t>(bytes, 8, type);
    for (std::string* part : {&name, &text}) {
      bytes += *part;
      bytes.resize((bytes.size() + 3) / 4 * 4);
    }
    return bytes;
  };
  const std::string notes = note(1, std::string("GNU", 4), "abc") + note(32, std::string("AMDGPU", 7), metadata);
  std::string file(64 + 56, '\0');
  std::memcpy(file.data(), "\177ELF\2\1", 6);
  put<std::uint16_t>(file, 18, 0xe0);
  put<std::uint64_t>(file, 32, 64);  // where the program headers begin
  put<std::uint16_t>(file, 54, 56);
  put<std::uint16_t>(file, 56, 1);
  put<std::uint32_t>(file, 64, 4);
  put<std::uint64_t>(file, 64 + 8, file.size());
  put<std::uint64_t>(file, 64 + 32, notes.size());
  return file + notes;
}

std::string packed(const Json& document) {
  const auto bytes = Json::to_msgpack(document);
  return {bytes.begin(), bytes.end()};
}

Json document() {
  return {{"amdhsa.target", "amdgcn-amd-amdhsa--gfx90a"},
          {"amdhsa.kernels",
           {{{".name", "f"},
             {".symbol", "f.kd"},
             {".vgpr_count", 130},
             {".agpr_count", 2},
             {".sgpr_count", 20},
             {".vgpr_spill_count", 3},
             {".sgpr_spill_count", 4},
             {".group_segment_fixed_size", 70000},
             {".private_segment_fixed_size", 16},
             {".max_flat_workgroup_size", 256},
             {".wavefront_size", 64},
             {".args",
              {{{".offset", 0}, {".size", 8}, {".value_kind", "global_buffer"}},
               {{".offset", 8}, {".size", 4}, {".value_kind", "by_value"}},
               {{".offset", 16}, {".size", 8}, {".value_kind", "hidden_global_offset_x"}}}}}}}};
}

TEST(CodeObject, EveryFieldIsRead) {
  const auto code = hip::read_code_object(elf_with(packed(document())));
  ASSERT_TRUE(code);
  EXPECT_EQ(code->target, "amdgcn-amd-amdhsa--gfx90a");
  ASSERT_EQ(code->kernels.size(), 1u);
  const hip::KernelMetadata& f = code->kernels.front();
  EXPECT_EQ(f.name, "f");
  EXPECT_EQ(std::tuple(f.vector_registers, f.accumulation_registers, f.scalar_registers), std::tuple(130, 2, 20));
  EXPECT_EQ(std::tuple(f.vector_spills, f.scalar_spills), std::tuple(3, 4));
  EXPECT_EQ(std::tuple(f.group_bytes, f.private_bytes), std::tuple(70000, 16));
  EXPECT_EQ(std::tuple(f.max_threads_per_block, f.wavefront), std::tuple(256, 64));
  ASSERT_EQ(f.arguments.size(), 2u) << "hidden ones are the compiler's own";
  EXPECT_TRUE(f.arguments[0].is_pointer);
  EXPECT_FALSE(f.arguments[1].is_pointer);
}

TEST(CodeObject, DamagedAndShortenedFilesAreReadOrRefused) {
  const std::string whole = elf_with(packed(document()));
  EXPECT_TRUE(rc::check([&] {
    std::string bytes = whole;
    const auto changes = *rc::gen::container<std::vector<std::pair<std::size_t, std::uint8_t>>>(
        rc::gen::pair(rc::gen::inRange<std::size_t>(0, whole.size()), rc::gen::arbitrary<std::uint8_t>()));
    for (const auto& [at, value] : changes) bytes[at] = static_cast<char>(value);
    bytes.resize(*rc::gen::inRange<std::size_t>(0, whole.size() + 1));
    std::string reason;
    const auto code = hip::read_code_object(bytes, &reason);
    RC_ASSERT(code.has_value() == reason.empty());
    if (bytes.size() < whole.size()) RC_ASSERT(!code.has_value());
    if (code)
      for (const auto& kernel : code->kernels) RC_ASSERT(kernel.vector_registers >= 0 && kernel.group_bytes >= 0);
  }));
}

}  // namespace
