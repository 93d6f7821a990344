// Compiled code comes from a compiler, or from a cache on disk: whatever the bytes are, they are read or refused.
// Inputs are also tried as the note of a sound ELF file, so that the fuzzer gets behind its header.
#include <cstdint>
#include <cstring>
#include <string>

#include "device/code_object.hpp"

namespace {

std::string elf_with(const std::string& note) {
  std::string file(64 + 56 + 12 + 8, '\0');
  const auto put = [&](std::size_t offset, std::uint64_t value, std::size_t bytes) {
    std::memcpy(file.data() + offset, &value, bytes);
  };
  std::memcpy(file.data(), "\177ELF\2\1", 6);
  put(18, 0xe0, 2);
  put(32, 64, 8);
  put(54, 56, 2);
  put(56, 1, 2);
  put(64, 4, 4);
  put(64 + 8, 120, 8);
  put(64 + 32, 20 + note.size(), 8);
  put(120, 7, 4);
  put(124, note.size(), 4);
  put(128, 32, 4);
  std::memcpy(file.data() + 132, "AMDGPU", 6);
  return file + note;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  ergotune::hip::read_code_object(text);
  ergotune::hip::read_code_object(elf_with(text));
  return 0;
}
