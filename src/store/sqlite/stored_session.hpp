// What every reader of a stored session needs of it beside its rows.
#pragma once

#include <optional>
#include <vector>

#include "ergotune/problem.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune {

/// The problem as it was stored; nullopt where none was. Throws UserError when it cannot be read.
std::optional<Problem> stored_problem(const Store& store, std::int64_t session);

/// The session's parameters; of those that the problem does not know only name and kind. None has a range:
/// the values are those that were measured.
std::vector<Parameter> stored_parameters(const SessionInfo& session, const std::optional<Problem>& problem);

}  // namespace ergotune
