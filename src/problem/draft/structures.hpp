// Structures that a kernel takes by value, read for a first problem file.
#pragma once

#include "problem/draft/draft_source.hpp"

namespace ergotune::draft {

/// Replaces each parameter that is a structure of scalars by its members: "g_width" for "g.width" in the parameters and
/// the body, and what the host program gives them in the launch's arguments. Others remain as they are.
void split_structures(DraftSource& source);

}  // namespace ergotune::draft
