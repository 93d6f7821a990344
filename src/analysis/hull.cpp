#include <algorithm>
#include <numeric>

#include "analysis/tradeoff.hpp"

namespace ergotune {
std::vector<std::size_t> convex_hull(std::span<const double> x, std::span<const double> y) {
  // Andrew's monotone chain.
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (x[a] != x[b]) return x[a] < x[b];
    return y[a] != y[b] ? y[a] < y[b] : a < b;
  });
  order.erase(std::unique(order.begin(), order.end(), [&](auto a, auto b) { return x[a] == x[b] && y[a] == y[b]; }),
              order.end());
  if (order.size() < 3) return order;
  const auto turn = [&](std::size_t a, std::size_t b, std::size_t c) {
    return (x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a]);
  };
  std::vector<std::size_t> hull;
  const auto add = [&](std::size_t i, std::size_t least) {
    while (hull.size() >= least + 2 && turn(hull[hull.size() - 2], hull.back(), i) <= 0) hull.pop_back();
    hull.push_back(i);
  };
  for (const std::size_t i : order) add(i, 0);
  hull.pop_back();
  const std::size_t lower = hull.size();
  for (auto it = order.rbegin(); it != order.rend(); ++it) add(*it, lower);
  hull.pop_back();
  return hull;
}

}  // namespace ergotune
