// Earlier results of the same problem, for a search to lean on.
#pragma once

#include <string>
#include <vector>

#include "tune/session/session_setup.hpp"

namespace ergotune {

/// What `names` stand for: a recording or store (of a store every session of this problem), or "auto": the other
/// sessions of this problem in the session's own store, whatever their device, size, driver or source. Throws UserError
/// for a file that cannot be read or says nothing of this space and objective; "auto" may find nothing.
std::vector<PriorResults> find_priors(const PreparedSession& prepared, const std::vector<std::string>& names);

}  // namespace ergotune
