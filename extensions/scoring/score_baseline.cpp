#include "scoring/score_baseline.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/statistics.hpp"
#include "ergotune/error.hpp"
#include "scoring/interpolation.hpp"

namespace ergotune::search {
namespace {

constexpr double kFirstCutoff = 0.01, kLastCutoff = 0.95, kBudgetFactor = 1.1;

std::vector<double> equidistant(double from, double to) {
  std::vector<double> points(kScorePoints);
  for (std::size_t i = 0; i < points.size(); ++i)
    points[i] = from + (to - from) * static_cast<double>(i) / static_cast<double>(points.size() - 1);
  return points;
}

}  // namespace

std::size_t ScoreBaseline::rank(double value) const {
  const auto it = std::upper_bound(descending.begin(), descending.end(), value, std::greater<>());
  return it == descending.begin() ? 0 : static_cast<std::size_t>(it - descending.begin()) - 1;
}

std::size_t draws_to_cutoff(std::span<const double> descending, double p) {
  const double optimum = descending.back();
  std::vector<double> ascending(descending.rbegin(), descending.rend());
  const double cutoff = optimum + (median(ascending) - optimum) * (1 - p);
  std::size_t i = 0;
  while (i + 1 < descending.size() && descending[i] > cutoff) ++i;
  if (p != 1 && descending[i] == optimum && i > 0) --i;
  const double n = static_cast<double>(descending.size()), position = static_cast<double>(i);
  return static_cast<std::size_t>(std::ceil(position / (n + 1 - position)));
}

double expected_best(std::span<const double> descending, std::size_t k) {
  const double n = static_cast<double>(descending.size()), draws = static_cast<double>(k);
  // std::nearbyint rounds halves to even, like the reference implementation of the method
  const double position = std::min(n - 1, std::nearbyint(draws * (n + 1) / (draws + 1)));
  return descending[static_cast<std::size_t>(position)];
}

ScoreBaseline make_baseline(std::span<const double> values, std::span<const double> valid_seconds,
                            std::span<const double> failed_seconds) {
  if (values.empty()) throw Error("no valid configuration: there is nothing to score on");
  ScoreBaseline baseline;
  baseline.descending.assign(values.begin(), values.end());
  std::sort(baseline.descending.begin(), baseline.descending.end(), std::greater<>());
  baseline.optimum = baseline.descending.back();
  baseline.median = median(values);

  std::vector<double> all(valid_seconds.begin(), valid_seconds.end());
  all.insert(all.end(), failed_seconds.begin(), failed_seconds.end());
  baseline.median_seconds = median(all);
  const double failed = failed_seconds.empty() ? 0.0 : mean(failed_seconds);
  const double per_draw =
      mean(valid_seconds) + static_cast<double>(failed_seconds.size()) / static_cast<double>(all.size()) * failed;

  const auto time_of = [&](double p) {
    return static_cast<double>(std::max<std::size_t>(1, draws_to_cutoff(baseline.descending, p))) *
           baseline.median_seconds;
  };
  baseline.draws_to_cutoff = draws_to_cutoff(baseline.descending, kLastCutoff);
  baseline.times = equidistant(time_of(kFirstCutoff), time_of(kLastCutoff));
  baseline.budget = kBudgetFactor * time_of(kLastCutoff);

  std::vector<double> draws, best;
  for (const double t : baseline.times) {
    const double k = std::max(1.0, per_draw > 0 ? std::nearbyint(t / per_draw) : 1.0);
    if (!draws.empty() && draws.back() == k) continue;
    draws.push_back(k);
    best.push_back(expected_best(baseline.descending, static_cast<std::size_t>(k)));
  }
  baseline.curve = pchip(draws, best, equidistant(draws.front(), draws.back()));
  return baseline;
}

}  // namespace ergotune::search
