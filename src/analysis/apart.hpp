// A round of several kernels beside the same launches in sequence, parts of it, and what that says each kernel owes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/attribution.hpp"
#include "ergotune/problem.hpp"

namespace ergotune {

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
