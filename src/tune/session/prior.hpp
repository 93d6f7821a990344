// Finds earlier results of the same problem as a prior for a search.
#pragma once

#include <string>
#include <vector>

#include "tune/session/session_setup.hpp"

namespace ergotune {

/// `names`: recordings or stores (of a store, all sessions of this problem), or "auto": the other sessions of this
/// problem in the session's own store, with any device, size, driver or source. Throws UserError for a file that cannot
/// be read or has no result for this space and objective; "auto" may find nothing.
std::vector<PriorResults> find_priors(const PreparedSession& prepared, const std::vector<std::string>& names);

}  // namespace ergotune
