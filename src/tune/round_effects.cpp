#include "tune/round_effects.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace ergotune {

std::vector<double> repeat_bias_factors(const std::vector<std::vector<RoundValue>>& candidates) {
  constexpr int kSweeps = 100;
  constexpr double kLeast = 1e-20;
  struct Round {
    double effect = 0, sum = 0, count = 0;
  };
  std::map<int, Round> rounds;
  std::vector<double> means(candidates.size(), 0.0), factors(candidates.size(), 1.0);
  double cells = 0;
  for (const auto& values : candidates)
    for (const RoundValue& v : values) ++rounds[v.round].count, ++cells;
  const double count = static_cast<double>(rounds.size());
  if (cells == count * static_cast<double>(candidates.size())) return factors;
  double noise = 1, drift = 1;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (auto& [number, round] : rounds) round.sum = 0;
    double squares = 0, drifts = 0, centre = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      means[i] = 0;
      for (const RoundValue& v : candidates[i])
        means[i] += (std::log(v.value) - rounds[v.round].effect) / static_cast<double>(candidates[i].size());
      for (const RoundValue& v : candidates[i]) rounds[v.round].sum += std::log(v.value) - means[i];
    }
    for (auto& [number, round] : rounds) {
      round.effect = round.sum / (round.count + noise / drift);
      centre += round.effect / count;
    }
    for (auto& [number, round] : rounds) {
      round.effect -= centre;
      drifts += round.effect * round.effect + noise / (round.count + noise / drift);
    }
    for (std::size_t i = 0; i < candidates.size(); ++i)
      for (const RoundValue& v : candidates[i])
        squares += std::pow(std::log(v.value) - means[i] - rounds[v.round].effect, 2);
    noise = std::max(kLeast, squares / std::max(1.0, cells - static_cast<double>(candidates.size()) - count + 1));
    drift = std::max(kLeast, drifts / count);
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    double effect = 0;
    for (const RoundValue& v : candidates[i])
      effect += rounds[v.round].effect / static_cast<double>(candidates[i].size());
    factors[i] = std::exp(effect);
  }
  return factors;
}

}  // namespace ergotune
