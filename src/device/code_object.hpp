// What an AMD code object says of its kernels, without a GPU: the note that the compiler leaves in the ELF file
// (NT_AMDGPU_METADATA, a MessagePack document; LLVM's "User Guide for AMDGPU Backend", code object metadata V3 and
// later).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune::hip {

struct KernelMetadata {
  struct Argument {
    std::int64_t offset = 0, bytes = 0;
    bool is_pointer = false;  ///< to a buffer; otherwise passed by value
  };
  /// What hipModuleGetFunction finds.
  std::string name;
  /// Of a thread: vector registers as they count against the register file (CDNA 2 and later have one for both kinds),
  /// those of them that are accumulation registers; scalar registers of its wavefront.
  int vector_registers = 0, accumulation_registers = 0, scalar_registers = 0;
  /// Registers that did not fit and live in memory.
  int vector_spills = 0, scalar_spills = 0;
  /// Local data share of a block, and memory of a thread outside its registers, in bytes.
  std::int64_t group_bytes = 0, private_bytes = 0;
  /// Threads of the largest block that it was compiled for, and of a wavefront.
  int max_threads_per_block = 0, wavefront = 0;
  /// Those in the source; the compiler's own hidden ones are left out.
  std::vector<Argument> arguments;
};

struct CodeObject {
  std::string target;  ///< "amdgcn-amd-amdhsa--gfx90a:sramecc+"
  std::vector<KernelMetadata> kernels;
};

/// nullopt, and why in `reason`, for what is no code object or damaged. Never throws, whatever the bytes.
std::optional<CodeObject> read_code_object(std::string_view bytes, std::string* reason = nullptr);

}  // namespace ergotune::hip
