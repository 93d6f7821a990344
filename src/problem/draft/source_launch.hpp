// How the host code beside a kernel launches it: defaults for a first problem file.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ergotune::draft {

/// The first launch or explicit instantiation of a kernel, as expressions of the source; empty where there is none.
struct SourceLaunch {
  std::vector<std::string> template_arguments;  ///< "float", "32" of transpose<float, 32><<<...>>>(...)
  std::vector<std::string> grid;                ///< "(n + 15) / 16" of dim3 grid((n + 15) / 16)
  std::vector<std::string> block;               ///< "16", "16" of dim3 block(16, 16)
  std::string block_variable;                   ///< "block", of OpenCL "local"; an expression where the launch has one
  std::string shared_memory_bytes;              ///< "block.x * sizeof(float)"; of a variable its last value
  std::vector<std::string> arguments;           ///< "cl::Local(4 * n)" for local memory of OpenCL, in bytes
  std::size_t at = std::string::npos;           ///< position in the source
};

SourceLaunch source_launch(const std::string& source, const std::string& kernel);
/// Returns the first call of a function of the host with this number of arguments; not its declarations.
SourceLaunch host_call(const std::string& source, const std::string& function, std::size_t arguments);

/// Returns the value of a whole number, a sum, product, quotient or shift of them, or of a macro or variable that the
/// source defines before `end` with such a value; nullopt for others.
std::optional<long> source_value(const std::string& source, const std::string& expression,
                                 std::size_t end = std::string::npos);

/// Returns what the last "#define NAME VALUE", "NAME = VALUE" or "NAME, OTHER = VALUE, OTHER" before `end` gives a
/// name, in a text without comments; empty if there is none.
std::string definition_of(const std::string& text, const std::string& name, std::size_t end);
/// Returns a whole number, or that which a name is defined as; nullopt for an expression, which parameters may change.
std::optional<long> named_number(const std::string& source, const std::string& text);
/// Returns the bytes that the host allocates for a buffer before `end` (clCreateBuffer, cl::Buffer, cl.Buffer,
/// cudaMalloc; malloc and std::vector, also for "x.data()"), in a text without comments; empty if it is not found.
std::string allocated_bytes(const std::string& text, const std::string& buffer, std::size_t end);
/// Returns the name, what it was last set to before `end` if that is a name, and so on: "width", "W" of "width = W".
std::vector<std::string> source_aliases(const std::string& source, const std::string& name, std::size_t end);

}  // namespace ergotune::draft
