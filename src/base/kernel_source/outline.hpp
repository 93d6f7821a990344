// The outline of a kernel's source in C, C++, CUDA, HIP or OpenCL C: its functions and macros, found without compiling
// it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ergotune::kernel_source {

struct Function {
  std::string name;
  std::string head;        ///< what stands before its name: "template <int N> __global__ void"
  std::string parameters;  ///< between the parentheses
  std::string body;        ///< with its braces; empty for a declaration
  int line = 0;            ///< of the name, from 1
};

struct Macro {
  std::string name;
  std::string value;  ///< empty where it has none
  bool takes_arguments = false;
  bool guarded = false;  ///< inside of "#ifndef NAME": a value that the compiler is given wins
  int line = 0;
};

struct Outline {
  std::vector<Function> functions;  ///< definitions, in their order
  std::vector<Macro> macros;
  std::string outside;  ///< what belongs to neither
  bool whole = true;    ///< every brace is closed: what was found can be relied on
};

/// The source with comments and the contents of strings replaced by blanks; lines and positions stay.
std::string blank_comments(std::string_view source);

Outline outline_of(std::string_view source);

/// Whether the character can be part of an identifier.
bool in_identifier(char c);

}  // namespace ergotune::kernel_source
