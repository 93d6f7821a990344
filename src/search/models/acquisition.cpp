#include "search/models/acquisition.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/statistics.hpp"
#include "search/heuristics/moves.hpp"

namespace ergotune::search {

double expected_improvement(double gain, double deviation) {
  if (!(deviation > 0)) return gain > 0 ? gain : 0.0;
  const double z = gain / deviation;
  if (z < -8) return 0;
  const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
  return gain * normal_cdf(z) + deviation * density;
}

double log_expected_improvement(double gain, double deviation) {
  constexpr double kNever = -1e300;
  if (!(deviation > 0)) return gain > 0 ? std::log(gain) : kNever;
  const double z = gain / deviation;
  if (z > -5) return std::log(expected_improvement(gain, deviation));
  // density(z) / z^2 (1 - 3 / z^2): the asymptotic series of Mills' ratio, less its first term
  return std::log(deviation) - 0.5 * z * z - 0.5 * std::log(2 * std::numbers::pi) - 2 * std::log(-z) +
         std::log1p(-3 / (z * z));
}

double least_deviations(double wanted, double largest) {
  // the improvement over the deviation rises with the gain over the deviation
  const double relative = wanted - std::log(largest);
  double low = -1e6, high = 1e6;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = (low + high) / 2;
    (log_expected_improvement(middle, 1) < relative ? low : high) = middle;
  }
  return low - 1e-6 * (1 + std::abs(low));
}

std::vector<ConfigurationIndex> Candidates::draw(const EvaluationCache& memory,
                                                 const std::vector<ConfigurationIndex>& incumbents,
                                                 const std::vector<ConfigurationIndex>& promising, Random& random,
                                                 std::size_t limit) const {
  std::vector<ConfigurationIndex> drawn;
  if (space_.size() <= limit) {
    drawn.resize(space_.size());
    std::iota(drawn.begin(), drawn.end(), ConfigurationIndex{0});
    return drawn;
  }
  drawn = promising;
  std::vector<std::uint32_t> here(space_.dimensions()), there(space_.dimensions());
  std::vector<ConfigurationIndex> near;
  for (const auto* list : {&incumbents, &promising})
    for (const ConfigurationIndex centre : *list) {
      space_.neighbours(centre, Neighbourhood::hamming, near);
      drawn.insert(drawn.end(), near.begin(), near.end());
      if (drawn.size() > limit / 3) break;
    }
  if (!incumbents.empty()) {
    Moves moves(space_);
    // the better ones more often; a neighbourhood of two or three steps is too large to be listed
    const auto pick = [&] {
      return incumbents[std::min(random.below(incumbents.size()), random.below(incumbents.size()))];
    };
    for (const std::size_t until = limit / 3 * 2; drawn.size() < until;) {
      const ConfigurationIndex from = pick();
      if (random.chance(0.3)) {
        space_.values_at(pick(), there);
        space_.values_at(from, here);
        for (std::size_t p = 0; p < here.size(); ++p)
          if (random.chance(0.5)) here[p] = there[p];
        drawn.push_back(moves.towards(from, std::span<const std::uint32_t>(here), random));
      } else {
        drawn.push_back(moves.perturbed(from, 2 + random.below(3), random));
      }
    }
  }
  while (drawn.size() < limit) drawn.push_back(space_.sample(random));
  std::sort(drawn.begin(), drawn.end());
  drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
  std::erase_if(drawn, [&](ConfigurationIndex index) { return memory.known(index); });
  return drawn;
}

}  // namespace ergotune::search
