// What a kernel is compiled from and called with: source, element types, buffers, scalars, structures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

enum class Language { cuda, opencl, hip, c, cpp, fortran };
std::string to_string(Language language);

/// Kernel source in one language. A kernel may have sources in several languages; each device compiles the one it
/// supports.
struct KernelSource {
  Language language = Language::opencl;
  /// Absolute path of the source file; empty for source text given in memory.
  std::filesystem::path file;
  std::string text;
  /// Absolute paths of the folders searched by #include; they always contain the source's own folder.
  std::vector<std::filesystem::path> include_folders;
};

enum class ElementType { int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, float32, float64 };
std::string to_string(ElementType type);
/// Parses a type name such as "float32", "float", "double", "int" or "uint"; returns nullopt for an unknown name.
std::optional<ElementType> element_type(std::string_view name);
std::size_t size_of(ElementType type);

/// External memory of this process (such as a tensor on a GPU) that kernels use in place. Such kernels are measured in
/// this process, and writes past the end of the memory are not detected. Its original contents are restored after a
/// run.
struct ExternalMemory {
  /// Device on which the memory resides, such as "cuda:0".
  std::string device;
  /// Address in the form that Device::wrap_buffer takes. The caller keeps ownership.
  void* address = nullptr;
  std::size_t bytes = 0;
  /// Copies the current contents into `into`, starting at byte `offset`.
  std::function<void(std::span<std::uint8_t> into, std::size_t offset)> read;
};

/// How a buffer is filled before a launch. Random values are reproducible: they are generated from `seed`.
struct Fill {
  enum class Kind { random, range, constant, file, data } kind = Kind::random;
  std::uint64_t seed = 1;
  double low = -1, high = 1;                              ///< random: uniform in [low, high) (integers: [low, high])
  double start = 0, step = 1;                             ///< range: start + i * step
  double value = 0;                                       ///< constant
  std::filesystem::path file;                             ///< file: raw little-endian elements
  std::shared_ptr<const std::vector<std::uint8_t>> data;  ///< data: raw elements given in memory (Python)
  std::shared_ptr<const ExternalMemory> foreign;          ///< data: external memory used in place, instead of `data`
};

/// One member of a structure that is passed by value.
struct Field {
  std::string name;
  ElementType type = ElementType::float32;
  Expression value;  ///< may use constants and parameters
};

/// Size in bytes of a structure with these members in C layout; 0 for no members.
std::size_t size_of(const std::vector<Field>& fields);

/// The bytes of a fill of kind `data`: a copy of `data`, or of the current contents of the external memory.
std::vector<std::uint8_t> contents_of(const Fill& fill);

/// How a kernel uses a buffer. Buffers with access write or read_write are verified; buffers with access read or
/// read_write are restored before verification.
enum class Access { read, write, read_write };

struct Argument {
  enum class Kind { scalar, buffer, local_memory } kind = Kind::buffer;
  std::string name;
  ElementType type = ElementType::float32;
  /// scalar: its value; may use constants and parameters.
  Expression value;
  /// scalar that is a structure: its members in order, in C layout, and the name of its type in the source ("struct
  /// grid"), which is needed to call a C kernel.
  std::vector<Field> fields;
  std::string type_name;
  /// buffer and local_memory: number of elements; may use constants and parameters (buffers: constants only).
  Expression count;
  Fill fill;
  Access access = Access::read;
  /// Condition under which the argument is passed; absent: always. Lets one position have several types or layouts. May
  /// use constants and parameters.
  std::optional<Expression> when;
  /// Type, order and shape in which Python code sees the elements if they differ from `type`, such as "complex64"
  /// (pairs of float32) or "bool"; empty: as `type`.
  std::string seen_as;
  SourcePlace place;

  bool passed(const Scope& scope) const { return !when || when->evaluate_bool(scope); }
};

}  // namespace ergotune
