// The share of each of several kernels that are measured together. It cannot be measured while they overlap: these are
// models, and every result says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ergotune/result.hpp"

namespace ergotune {

enum class AttributionMethod {
  marginal,  ///< what the whole would be without it: v(all) - v(all but it). Shares do not add up to the whole
  shapley  ///< the mean of what it adds, over all orders in which they may come together (Shapley 1953). Shares add up
};
std::string to_string(AttributionMethod method);
/// Throws UserError for another word.
AttributionMethod attribution_method(const std::string& word);

/// Players that run together: bit k for player k.
using Coalition = std::uint32_t;
inline constexpr std::size_t kMostShapleyPlayers = 4;

/// The coalitions that must be measured, the whole first. Throws UserError for more players than a method takes.
std::vector<Coalition> coalitions_for(AttributionMethod method, std::size_t players);

/// Each player's share of the whole, in the unit of `values`; the empty coalition has 0. Standard errors are those of
/// independent values, to which shares are linear. Provenance: modelled. Throws Error where a coalition is missing.
std::vector<Quantity> attribute(AttributionMethod method, std::size_t players,
                                const std::map<Coalition, Quantity>& values);

}  // namespace ergotune
