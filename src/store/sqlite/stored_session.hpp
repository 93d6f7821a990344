// The problem and parameters of a stored session.
#pragma once

#include <optional>
#include <vector>

#include "store/sqlite/store.hpp"

namespace ergotune {

struct Problem;

/// The stored problem; nullopt if none was stored. Throws UserError if it cannot be read.
std::optional<Problem> stored_problem(const Store& store, std::int64_t session);

/// The session's parameters; those that the problem does not contain have only a name and kind. Parameter::range is
/// never set, since the values are those that were measured.
std::vector<Parameter> stored_parameters(const SessionInfo& session, const std::optional<Problem>& problem);

}  // namespace ergotune
