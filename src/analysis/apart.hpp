// A round of several kernels beside the same launches in sequence, parts of it, and what that says each kernel owes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
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

/// Kernels to which something is attributed as one: those of a branch run together or not at all.
struct IterationPart {
  std::string name;                  ///< the kernel's, the branch's, or kernels with " + " between them
  std::vector<std::size_t> kernels;  ///< positions in Problem::kernels
};
/// In the order of the kernels.
std::vector<IterationPart> parts_of(const Problem& problem);

/// A round to be measured: the problem with other steps.
struct IterationVariant {
  std::string name;  ///< "as given", "in sequence", "lud alone", "without lud", "lud, hotspot"
  Problem problem;
  Coalition parts = 0;  ///< of those that run side by side as given; 0: not one of those
};
/// The round as given, the same launches in sequence and each kernel alone; with a method the rounds that it needs too.
/// Parts of a round are not verified: what they work on would have come from the others. Throws UserError for a problem
/// of one kernel, and for more parts than the method takes.
std::vector<IterationVariant> rounds_apart(const Problem& problem,
                                           std::optional<AttributionMethod> method = std::nullopt);

/// Quantities of the whole by part: time and energy, as far as every round that is needed has them.
struct Attribution {
  AttributionMethod method = AttributionMethod::shapley;
  std::vector<IterationPart> parts;
  std::map<std::string, std::vector<Quantity>> shares;  ///< by quantity, in the order of the parts
  std::map<std::string, Quantity> whole;
};
/// `measured` as rounds_apart() has them.
Attribution attribute(const Problem& problem, AttributionMethod method, const std::vector<IterationVariant>& rounds,
                      const std::vector<Measurement>& measured);

}  // namespace ergotune
