#include "analysis/attribution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/statistics.hpp"
#include "ergotune/error.hpp"

namespace ergotune {
namespace {

constexpr std::size_t kMostPlayers = 20;

double factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

/// How often a coalition counts for a player, with its sign.
double weight(AttributionMethod method, int players, std::size_t player, Coalition coalition) {
  const bool inside = coalition >> player & 1;
  const int size = std::popcount(coalition);
  if (method == AttributionMethod::marginal) return inside ? 1 : -1;  // only the whole, and all but the player
  return inside ? factorial(size - 1) * factorial(players - size) / factorial(players)
                : -factorial(size) * factorial(players - size - 1) / factorial(players);
}

Coalition all_of(std::size_t players) { return (Coalition{1} << players) - 1; }

/// The coalitions that a player's share consists of; the empty one has 0.
std::vector<Coalition> coalitions_of_player(AttributionMethod method, std::size_t players, std::size_t player) {
  const Coalition all = all_of(players);
  if (method == AttributionMethod::marginal) return {all, all & ~(Coalition{1} << player)};
  std::vector<Coalition> list;
  for (Coalition c = all; c > 0; --c) list.push_back(c);
  return list;
}

}  // namespace

std::string to_string(AttributionMethod method) {
  return method == AttributionMethod::marginal ? "marginal" : "shapley";
}

AttributionMethod attribution_method(const std::string& word) {
  for (const auto method : {AttributionMethod::marginal, AttributionMethod::shapley})
    if (to_string(method) == word) return method;
  throw UserError(fmt::format("energy is not attributed by \"{}\"{}", word, suggestion(word, {"marginal", "shapley"})));
}

std::vector<Coalition> coalitions_for(AttributionMethod method, std::size_t players) {
  if (players > kMostPlayers || (method == AttributionMethod::shapley && players > kMostShapleyPlayers))
    throw UserError(
        fmt::format("Shapley values of {} kernels would take {} rounds; up to {} kernels have them, more are "
                    "attributed by \"marginal\"",
                    players, std::exp2(players) - 1, kMostShapleyPlayers));
  std::vector<Coalition> list;
  for (std::size_t player = 0; player < players; ++player)
    for (const Coalition c : coalitions_of_player(method, players, player))
      if (c > 0 && std::find(list.begin(), list.end(), c) == list.end()) list.push_back(c);
  return list;
}

std::vector<Quantity> attribute(AttributionMethod method, std::size_t players,
                                const std::map<Coalition, Quantity>& values) {
  std::vector<Quantity> shares;
  for (std::size_t player = 0; player < players; ++player) {
    Quantity share;
    std::vector<ErrorEstimate> errors;
    for (const Coalition coalition : coalitions_of_player(method, players, player)) {
      if (coalition == 0) continue;
      const auto found = values.find(coalition);
      if (found == values.end()) throw Error("a coalition that the attribution needs was not measured");
      const double factor = weight(method, static_cast<int>(players), player, coalition);
      share.value += factor * found->second.value;
      errors.push_back({std::abs(factor) * found->second.standard_error, found->second.degrees});
      share.n = share.n == 0 ? found->second.n : std::min(share.n, found->second.n);
    }
    const ErrorEstimate error = combined_error(errors);
    share.standard_error = error.standard_error;
    share.degrees = error.degrees;
    share.method = method == AttributionMethod::marginal ? "the whole less the round without it" : "Shapley value";
    share.provenance = Provenance::modelled;
    shares.push_back(std::move(share));
  }
  return shares;
}

}  // namespace ergotune
