#include "analysis/apart.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/statistics.hpp"
#include "ergotune/error.hpp"
#include "problem/steps.hpp"

namespace ergotune {

namespace {

using Kernels = std::set<std::size_t>;

Kernels kernels_in(const Step& step) {
  if (step.kind == Step::Kind::launch) return {step.kernel};
  Kernels kernels;
  for (const Step& inner : step.steps) kernels.merge(kernels_in(inner));
  return kernels;
}

/// Assigns kernels that share a branch to one part.
void join_branches(const std::vector<Step>& steps, std::vector<std::size_t>& part_of,
                   std::map<Kernels, std::string>& names) {
  for (const Step& step : steps) {
    join_branches(step.steps, part_of, names);
    if (step.kind != Step::Kind::concurrent) continue;
    for (const Step& branch : step.steps) {
      const Kernels kernels = kernels_in(branch);
      names.emplace(kernels, branch.name);
      for (const std::size_t kernel : kernels) {
        const std::size_t old = part_of[kernel], fresh = part_of[*kernels.begin()];
        std::ranges::replace(part_of, old, fresh);
      }
    }
  }
}

Problem with_steps(const Problem& problem, std::vector<Step> steps) {
  Problem variant = problem;
  variant.steps = std::move(steps);
  return variant;
}

Problem unverified(Problem problem) {
  problem.verification = {};
  problem.verification.kind = Verification::Kind::none;
  for (Kernel& kernel : problem.kernels) kernel.verification = nullptr;
  return problem;
}

IterationVariant only(const Problem& problem, const std::vector<IterationPart>& parts, Coalition coalition) {
  std::vector<std::size_t> kernels;
  std::vector<std::string> in, out;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const bool inside = coalition >> p & 1;
    (inside ? in : out).push_back(parts[p].name);
    if (inside) kernels.insert(kernels.end(), parts[p].kernels.begin(), parts[p].kernels.end());
  }
  const std::string name = out.size() == 1 && in.size() > 1 ? "without " + out.front()
                           : in.size() == 1                 ? fmt::format("branch {} alone", in.front())
                                                            : fmt::format("{}", fmt::join(in, ", "));
  return {name, unverified(with_steps(problem, steps_of_kernels(problem, kernels))), coalition};
}

}  // namespace

std::vector<IterationPart> parts_of(const Problem& problem) {
  std::vector<std::size_t> part_of(problem.kernels.size());
  std::iota(part_of.begin(), part_of.end(), std::size_t{0});
  std::map<Kernels, std::string> names;
  join_branches(problem.steps, part_of, names);
  std::map<std::size_t, Kernels> groups;
  for (std::size_t k = 0; k < part_of.size(); ++k) groups[part_of[k]].insert(k);
  std::vector<IterationPart> parts;
  for (const auto& [number, kernels] : groups) {
    IterationPart part{"", {kernels.begin(), kernels.end()}};
    const auto branch = names.find(kernels);
    for (const std::size_t k : kernels) part.name += (part.name.empty() ? "" : " + ") + problem.kernels[k].name;
    if (branch != names.end()) part.name = branch->second;
    parts.push_back(std::move(part));
  }
  std::ranges::sort(parts, [](const IterationPart& a, const IterationPart& b) { return a.kernels < b.kernels; });
  return parts;
}

std::vector<IterationVariant> iteration_variants(const Problem& problem, std::optional<AttributionMethod> method) {
  if (!problem.has_named_kernels())
    throw UserError("a round is taken apart into its kernels; this problem has one kernel");
  const std::vector<IterationPart> parts = parts_of(problem);
  const Coalition all = (Coalition{1} << parts.size()) - 1;
  std::vector<Coalition> wanted;
  if (method) wanted = coalitions_for(*method, parts.size());
  std::vector<IterationVariant> rounds{{"as given", problem, all},
                                       {"in sequence", with_steps(problem, steps_in_sequence(problem))}};
  const auto needed = [&](const std::vector<std::size_t>& kernels) -> Coalition {
    for (std::size_t p = 0; p < parts.size(); ++p)
      if (parts[p].kernels == kernels) return Coalition{1} << p;
    return 0;
  };
  for (std::size_t k = 0; k < problem.kernels.size(); ++k)
    rounds.push_back(
        {problem.kernels[k].name + " alone", unverified(with_steps(problem, steps_alone(problem, k))), needed({k})});
  for (const Coalition coalition : wanted) {
    const auto known = [&](const IterationVariant& round) { return round.parts == coalition; };
    if (std::ranges::none_of(rounds, known)) rounds.push_back(only(problem, parts, coalition));
  }
  return rounds;
}

Attribution attribute(const Problem& problem, AttributionMethod method, const std::vector<IterationVariant>& rounds,
                      const std::vector<Measurement>& measured) {
  Attribution result{method, parts_of(problem), {}, {}};
  for (const char* quantity : {"time", "energy"}) {
    std::map<Coalition, Quantity> values;
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      const auto found = measured[i].quantities.find(quantity);
      if (rounds[i].parts > 0 && usable(measured[i].status) && found != measured[i].quantities.end())
        values[rounds[i].parts] = found->second;
    }
    const std::vector<Coalition> needed = coalitions_for(method, result.parts.size());
    if (!std::ranges::all_of(needed, [&](Coalition c) { return values.contains(c); })) continue;
    result.shares[quantity] = attribute(method, result.parts.size(), values);
    result.whole[quantity] = values.at((Coalition{1} << result.parts.size()) - 1);
  }
  return result;
}

namespace {

constexpr std::size_t kMostPlayers = 20;

double factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

/// The weight of a coalition's value in a player's share.
double weight(AttributionMethod method, int players, std::size_t player, Coalition coalition) {
  const bool inside = coalition >> player & 1;
  const int size = std::popcount(coalition);
  if (method == AttributionMethod::marginal)
    return inside ? 1 : -1;  // only the whole, and the whole without the
                             // player
  return inside ? factorial(size - 1) * factorial(players - size) / factorial(players)
                : -factorial(size) * factorial(players - size - 1) / factorial(players);
}

Coalition all_of(std::size_t players) { return (Coalition{1} << players) - 1; }

/// The coalitions that contribute to a player's share; the empty one has value 0.
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
      if (c > 0 && std::ranges::find(list, c) == list.end()) list.push_back(c);
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

nlohmann::ordered_json attribution_document(const Attribution& attribution) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (std::size_t p = 0; p < attribution.parts.size(); ++p) {
    nlohmann::ordered_json part{{"name", attribution.parts[p].name}};
    for (const auto& [quantity, shares] : attribution.shares)
      part[quantity] = {{"value", shares[p].value},
                        {"standard_error", shares[p].standard_error},
                        {"half_width", shares[p].half_width()},
                        {"provenance", to_string(shares[p].provenance)}};
    parts.push_back(std::move(part));
  }
  return {
      {"method", to_string(attribution.method)}, {"provenance", to_string(Provenance::modelled)}, {"kernels", parts}};
}

}  // namespace ergotune
