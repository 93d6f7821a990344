// Detects names that a kernel declares although they are macros, and parameters that a kernel does not use. Constants
// and parameters are passed to kernels as macros; if the kernel declares the same name, the compiler sees "int 1024;"
// and reports an incomprehensible error.
#pragma once

#include <string>
#include <vector>

#include "ergotune/error.hpp"

namespace ergotune {

struct KernelSource;
struct Problem;

/// Returns the code parameters whose names do not occur in any source, option, argument, launch or step of the problem.
/// Returns none if a source includes a file that may use them.
std::vector<std::string> unused_parameters(const Problem& problem);
/// Returns a message for each of them.
std::vector<std::string> unused_parameter_notes(const Problem& problem);

struct MacroClash {
  std::string name;
  SourcePlace place;  ///< place of the declaration in the kernel's source
};

/// Returns the names among `macros` that C-like source declares as a variable or an argument, with the first place of
/// each. Names that the source tests (#ifdef, #ifndef, #undef, defined) are left out, since its author expects a macro.
/// Only the text is examined: declarations in macros and included files are not found.
std::vector<MacroClash> macro_clashes(const KernelSource& source, const std::vector<std::string>& macros);

}  // namespace ergotune
