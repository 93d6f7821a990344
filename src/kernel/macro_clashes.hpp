// Constants and parameters reach a kernel as macros. Where the kernel declares something of the same name,
// the compiler sees "int 1024;" and reports an incomprehensible error.
#pragma once

#include <string>
#include <vector>

#include "ergotune/problem.hpp"

namespace ergotune {

struct MacroClash {
  std::string name;
  SourcePlace place;  ///< of the declaration, in the kernel's source
};

/// The names among `macros` that C-like source declares as a variable or an argument, each at its first
/// place. A name that the source asks about (#ifdef, #ifndef, #undef, defined) is left alone: its author
/// knows. Source is read as text, so that what a macro or an included file declares is not seen.
std::vector<MacroClash> macro_clashes(const KernelSource& source, const std::vector<std::string>& macros);

/// What to tell the user of each of them, for one of the problem's kernels or its reference.
std::vector<std::string> macro_clash_notes(const Problem& problem, const Kernel& kernel, const Constants& constants,
                                           const std::vector<const KernelSource*>& sources);

}  // namespace ergotune
