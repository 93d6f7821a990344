// Names that a kernel uses but its source does not define. They are macros that come from the compiler's command line
// (-D), usually the parameters to tune.
#pragma once

#include <string>
#include <vector>

#include "base/kernel_source/identifiers.hpp"
#include "base/kernel_source/outline.hpp"

namespace ergotune::draft {

struct UndefinedName {
  std::string name;
  bool in_condition = false;  ///< occurs only as a condition
  bool in_ifdef = false;      ///< occurs only in #ifdef and similar directives
  bool as_type = false;       ///< used as a type
  bool as_schedule = false;   ///< schedule of an OpenMP loop
  bool as_unroll = false;     ///< factor of a #pragma unroll
};

/// Returns the names in the order of the source: names in capitals, and lower-case names that follow Kernel Tuner's
/// conventions (block_size_x). Names that a header in `folders` or the language defines are left out. `used`: the
/// identifiers of the kernel.
std::vector<UndefinedName> undefined_names(const std::string& source, const std::vector<std::string>& folders,
                                           const kernel_source::Outline& outline,
                                           const kernel_source::Identifiers& used);

}  // namespace ergotune::draft
