// Structures that a kernel takes, read for a first problem file.
#pragma once

#include <string>
#include <vector>

#include "ergotune/argument.hpp"
#include "problem/draft/draft_source.hpp"

namespace ergotune::draft {

/// Adds the structures that a source defines, as "uint8[16]" for 16 bytes; others remain unknown.
void add_structures(const std::string& source, bool opencl, TypeNames& types);

/// Returns the members of a structure that a source defines, their names as in the source ("from[0]") and without
/// values; none where it is not found or a problem file cannot describe it. `macros`: which the compiler's options
/// define.
std::vector<Field> members_in_source(const std::string& source, bool opencl, const std::string& type,
                                     const std::vector<std::string>& macros);

/// Replaces each parameter that is a structure of numbers, of arrays or of vectors, or a vector, by its members:
/// "g_width" for "g.width", "g_from_0" for "g.from[0]" in the parameters and the body, and what the host program gives
/// them in the launch's arguments. Others remain as they are.
void split_structures(DraftSource& source);

}  // namespace ergotune::draft
