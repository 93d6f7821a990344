// Names that a kernel uses and its source does not define: they come as macros from the compiler's command line (-D),
// and are what its author tunes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/kernel_source/identifiers.hpp"
#include "base/kernel_source/outline.hpp"

namespace ergotune::draft {

struct UndefinedName {
  std::string name;
  bool in_condition = false;  ///< it occurs as a condition, and nowhere else
  bool in_ifdef = false;      ///< it occurs in #ifdef and the like, and nowhere else
  bool as_type = false;       ///< it stands where a type does
  bool as_schedule = false;   ///< of an OpenMP loop
  bool as_unroll = false;     ///< of a #pragma unroll
};

/// In the order of the source. Names in capitals, and what Kernel Tuner's kernels have in small letters (block_size_x);
/// none of those that a header beside the source, or a language, defines. `used`: the identifiers of the kernel.
std::vector<UndefinedName> undefined_names(const std::string& source, const std::filesystem::path& folder,
                                           const kernel_source::Outline& outline,
                                           const kernel_source::Identifiers& used);

}  // namespace ergotune::draft
