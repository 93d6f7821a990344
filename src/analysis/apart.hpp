// Compares an iteration of several kernels with the same launches in sequence and with parts of it, and attributes time
// and energy to the kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "ergotune/result.hpp"

namespace ergotune {

enum class AttributionMethod {
  marginal,  ///< value of the whole without it: v(all) - v(all but it). Shares do not add up to the whole
  shapley    ///< mean of its contribution over all orders of adding the players (Shapley 1953). Shares add up to the
             ///< whole
};
std::string to_string(AttributionMethod method);
/// Throws UserError for an unknown name.
AttributionMethod attribution_method(const std::string& word);

/// A set of players that run together: bit k for player k.
using Coalition = std::uint32_t;
inline constexpr std::size_t kMostShapleyPlayers = 4;

/// The coalitions that have to be measured, the whole first. Throws UserError for more players than a method allows.
std::vector<Coalition> coalitions_for(AttributionMethod method, std::size_t players);

/// Each player's share of the whole, in the unit of `values`; the empty coalition counts 0. Shares are linear in the
/// values, which are assumed independent; their standard errors follow from that. Provenance: modelled. Throws Error if
/// a coalition is missing.
std::vector<Quantity> attribute(AttributionMethod method, std::size_t players,
                                const std::map<Coalition, Quantity>& values);

/// Kernels that form one player: those of a branch run together or not at all.
struct IterationPart {
  std::string name;                  ///< name of the kernel or branch, or names of kernels joined by " + "
  std::vector<std::size_t> kernels;  ///< positions in Problem::kernels
};
/// The parts in the order of the kernels.
std::vector<IterationPart> parts_of(const Problem& problem);

/// An iteration to be measured: the problem with other steps.
struct IterationVariant {
  std::string name;  ///< "as given", "in sequence", "lud alone", "without lud", "lud, hotspot"
  Problem problem;
  Coalition parts = 0;  ///< the parts in it, which run concurrently as in the original; 0: not such a variant
};
/// The iteration as given, the same launches in sequence, each kernel alone, and the iterations that `method` requires.
/// Parts of an iteration are not verified, since their inputs would come from other parts. Throws UserError for a
/// problem with one kernel, and for more parts than the method allows.
std::vector<IterationVariant> iteration_variants(const Problem& problem,
                                                 std::optional<AttributionMethod> method = std::nullopt);

/// Time and energy of the iteration by part, if all required iterations have them.
struct Attribution {
  AttributionMethod method = AttributionMethod::shapley;
  std::vector<IterationPart> parts;
  std::map<std::string, std::vector<Quantity>> shares;  ///< by quantity, in the order of the parts
  std::map<std::string, Quantity> whole;
};
/// `measured`: results in the order of `rounds`, which iteration_variants() returned.
Attribution attribute(const Problem& problem, AttributionMethod method, const std::vector<IterationVariant>& rounds,
                      const std::vector<Measurement>& measured);
/// "attribution" in the document of `ergotune measure --apart --attribute METHOD --json`.
nlohmann::ordered_json attribution_document(const Attribution& attribution);

}  // namespace ergotune
