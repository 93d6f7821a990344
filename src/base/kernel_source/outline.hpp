// Outline of a kernel's source in C, C++, CUDA, HIP or OpenCL C: its functions and macros, found without compiling.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune::kernel_source {

struct Function {
  std::string name;
  std::string head;        ///< text before its name: "template <int N> __global__ void"
  std::string parameters;  ///< text between the parentheses
  std::string body;        ///< including braces; empty for a declaration
  int line = 0;            ///< line of the name, from 1
  bool in_unnamed_namespace = false;
};

struct Macro {
  std::string name;
  std::string value;  ///< empty: none
  bool takes_arguments = false;
  bool guarded = false;  ///< within "#ifndef NAME", so that a value given to the compiler takes precedence
  int line = 0;
};

/// A function, type, variable or other declaration.
struct Part {
  std::size_t begin = 0, end = 0;  ///< positions in the source
  std::size_t brace = 0;           ///< position of its first brace; `end`: none
  std::string function;            ///< its name; empty: no definition of a function
};

struct Outline {
  std::vector<Part> parts;          ///< at file scope and in namespaces, in order
  std::vector<Function> functions;  ///< definitions in order
  std::vector<Macro> macros;
  std::string outside;  ///< text outside of functions and macros
  bool whole = true;    ///< all braces are closed, so that the outline is reliable
};

/// Returns the source with comments and contents of strings replaced by blanks; lines and positions are preserved.
std::string blank_comments(std::string_view source);

Outline outline_of(std::string_view source);

/// Returns the source as a compiler that defines `macro` reads it: what conditions on this macro exclude is replaced by
/// blanks; lines and positions are preserved. Conditions on other macros are not evaluated.
std::string source_with_macro(std::string_view source, std::string_view macro);

/// Returns the definition with which the source replaces a macro that the compiler's command line defines; nullopt if
/// there is none, or only one below a condition on something else.
std::optional<Macro> redefinition_of(std::string_view source, std::string_view macro);

/// Returns a message for each __constant__ or __device__ variable that device code of the source reads and neither
/// initialises nor writes: such variables are zero, because only arguments are copied to the device.
std::vector<std::string> unfilled_variables(std::string_view source, const std::string& file);

/// True if the character can be part of an identifier.
bool in_identifier(char c);
/// Returns the position behind the identifier or number at `at`; `at` if there is none.
std::size_t end_of_identifier(std::string_view text, std::size_t at);

}  // namespace ergotune::kernel_source
