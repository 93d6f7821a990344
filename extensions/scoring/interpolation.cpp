#include "scoring/interpolation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace ergotune::search {
namespace {

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
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return x[a] < x[b]; });

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

}  // namespace ergotune::search
