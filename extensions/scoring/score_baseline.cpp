#include "scoring/score_baseline.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/statistics.hpp"
#include "ergotune/error.hpp"

namespace ergotune::search {
namespace {

constexpr double kFirstCutoff = 0.01, kLastCutoff = 0.95, kBudgetFactor = 1.1;

std::vector<double> equidistant(double from, double to) {
  std::vector<double> points(kScorePoints);
  for (std::size_t i = 0; i < points.size(); ++i)
    points[i] = from + (to - from) * static_cast<double>(i) / static_cast<double>(points.size() - 1);
  return points;
}

// Three-point estimate of the slope at an end, limited to preserve the shape of the data.
double end_slope(double h0, double h1, double d0, double d1) {
  const double slope = ((2 * h0 + h1) * d0 - h0 * d1) / (h0 + h1);
  if (slope * d0 <= 0) return 0;
  if (d0 * d1 <= 0 && std::abs(slope) > 3 * std::abs(d0)) return 3 * d0;
  return slope;
}

std::vector<double> slopes(std::span<const double> x, std::span<const double> y) {
  const std::size_t n = x.size();
  std::vector<double> h(n - 1), d(n - 1), m(n, 0.0);
  for (std::size_t i = 0; i + 1 < n; ++i) {
    h[i] = x[i + 1] - x[i];
    d[i] = (y[i + 1] - y[i]) / h[i];
  }
  if (n == 2) return {d[0], d[0]};
  for (std::size_t i = 1; i + 1 < n; ++i) {
    if (d[i - 1] * d[i] <= 0) continue;
    const double w1 = 2 * h[i] + h[i - 1], w2 = h[i] + 2 * h[i - 1];
    m[i] = (w1 + w2) / (w1 / d[i - 1] + w2 / d[i]);
  }
  m[0] = end_slope(h[0], h[1], d[0], d[1]);
  m[n - 1] = end_slope(h[n - 2], h[n - 3], d[n - 2], d[n - 3]);
  return m;
}

}  // namespace

std::vector<double> pchip(std::span<const double> x, std::span<const double> y, std::span<const double> at) {
  if (x.empty()) return std::vector<double>(at.size(), std::numeric_limits<double>::quiet_NaN());
  if (x.size() == 1) return std::vector<double>(at.size(), y[0]);
  const std::vector<double> m = slopes(x, y);
  std::vector<double> result;
  result.reserve(at.size());
  for (const double t : at) {
    const auto next = std::upper_bound(x.begin(), x.end(), t);
    if (next == x.begin() || next == x.end()) {
      result.push_back(next == x.begin() ? y.front() : y.back());
      continue;
    }
    const auto i = static_cast<std::size_t>(next - x.begin()) - 1;
    const double h = x[i + 1] - x[i], s = (t - x[i]) / h;
    result.push_back((1 + 2 * s) * (1 - s) * (1 - s) * y[i] + s * (1 - s) * (1 - s) * h * m[i] +
                     s * s * (3 - 2 * s) * y[i + 1] + s * s * (s - 1) * h * m[i + 1]);
  }
  return result;
}

std::vector<double> decreasing_fit(std::span<const double> x, std::span<const double> y, std::span<const double> at) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return x[a] < x[b]; });

  std::vector<double> distinct, value, weight;
  for (const std::size_t i : order) {
    if (!distinct.empty() && x[i] == distinct.back()) {
      value.back() = (value.back() * weight.back() + y[i]) / (weight.back() + 1);
      weight.back() += 1;
    } else {
      distinct.push_back(x[i]);
      value.push_back(y[i]);
      weight.push_back(1);
    }
  }
  struct Block {
    double value, weight;
    std::size_t count;
  };
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < value.size(); ++i) {
    Block block{value[i], weight[i], 1};
    while (!blocks.empty() && blocks.back().value < block.value) {
      const Block& last = blocks.back();
      const double total = last.weight + block.weight;
      block = {(last.value * last.weight + block.value * block.weight) / total, total, last.count + block.count};
      blocks.pop_back();
    }
    blocks.push_back(block);
  }
  std::size_t filled = 0;
  for (const Block& block : blocks)
    for (std::size_t i = 0; i < block.count; ++i) value[filled++] = block.value;

  std::vector<double> result;
  result.reserve(at.size());
  for (const double t : at) {
    const auto next = std::upper_bound(distinct.begin(), distinct.end(), t);
    if (distinct.empty()) {
      result.push_back(std::numeric_limits<double>::quiet_NaN());
    } else if (next == distinct.begin()) {
      result.push_back(value.front());
    } else if (next == distinct.end()) {
      result.push_back(value.back());
    } else {
      const auto i = static_cast<std::size_t>(next - distinct.begin());
      const double share = (t - distinct[i - 1]) / (distinct[i] - distinct[i - 1]);
      result.push_back(value[i - 1] + share * (value[i] - value[i - 1]));
    }
  }
  return result;
}

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
  std::ranges::sort(baseline.descending, std::greater<>());
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
