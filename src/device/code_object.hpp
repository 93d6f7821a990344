// Reads the metadata of kernels from an AMD code object, without a GPU: the note that the compiler writes into the ELF
// file (NT_AMDGPU_METADATA, a MessagePack document; LLVM's "User Guide for AMDGPU Backend", code object metadata V3 and
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
    bool is_pointer = false;  ///< pointer to a buffer; otherwise passed by value
  };
  /// Name for hipModuleGetFunction.
  std::string name;
  /// Per thread: vector registers as allocated in the register file (CDNA 2 and later have one for both kinds), and the
  /// accumulation registers among them. Per wavefront: scalar registers.
  int vector_registers = 0, accumulation_registers = 0, scalar_registers = 0;
  /// Registers spilled to memory.
  int vector_spills = 0, scalar_spills = 0;
  /// Local data share per block, and private memory per thread, in bytes.
  std::int64_t group_bytes = 0, private_bytes = 0;
  /// Maximum threads per block for which it was compiled, and threads per wavefront.
  int max_threads_per_block = 0, wavefront = 0;
  /// The arguments in the source, without the compiler's hidden ones.
  std::vector<Argument> arguments;
};

struct CodeObject {
  std::string target;  ///< "amdgcn-amd-amdhsa--gfx90a:sramecc+"
  std::vector<KernelMetadata> kernels;
};

/// Returns nullopt and sets `reason` if the bytes are not a valid code object. Does not throw.
std::optional<CodeObject> read_code_object(std::string_view bytes, std::string* reason = nullptr);

}  // namespace ergotune::hip
