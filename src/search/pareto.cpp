#include "search/pareto.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace ergotune {

bool dominates(std::span<const double> a, std::span<const double> b) {
  bool strictly = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    strictly = strictly || a[i] < b[i];
  }
  return strictly;
}

std::vector<std::size_t> pareto_front(const std::vector<std::vector<double>>& points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // in lexicographic order, a point comes after all points that dominate it
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return points[a] < points[b]; });
  std::vector<std::size_t> front;
  double lowest_second = std::numeric_limits<double>::infinity();
  for (const std::size_t i : order) {
    if (points[i].size() == 2) {
      if (points[i][1] < lowest_second) {
        lowest_second = points[i][1];
        front.push_back(i);
      }
      continue;
    }
    const bool beaten = std::any_of(front.begin(), front.end(), [&](std::size_t f) {
      return dominates(points[f], points[i]) || points[f] == points[i];
    });
    if (!beaten) front.push_back(i);
  }
  return front;
}

namespace {

double volume(std::vector<std::vector<double>> points, std::span<const double> reference) {
  const std::size_t dimensions = reference.size();
  std::erase_if(points, [&](const auto& p) {
    for (std::size_t i = 0; i < dimensions; ++i)
      if (!(p[i] < reference[i])) return true;
    return false;
  });
  if (points.empty()) return 0;
  if (dimensions == 1) {
    double lowest = points[0][0];
    for (const auto& p : points) lowest = std::min(lowest, p[0]);
    return reference[0] - lowest;
  }
  // slices along the last objective, each the volume of the points that reach into it
  std::sort(points.begin(), points.end(), [&](auto& a, auto& b) { return a[dimensions - 1] < b[dimensions - 1]; });
  double total = 0;
  if (dimensions == 2) {
    double lowest = reference[0];
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i][0] >= lowest) continue;
      total += (lowest - points[i][0]) * (reference[1] - points[i][1]);
      lowest = points[i][0];
    }
    return total;
  }
  std::vector<std::vector<double>> slice;
  for (std::size_t i = 0; i < points.size(); ++i) {
    slice.emplace_back(points[i].begin(), points[i].end() - 1);
    const double top = i + 1 < points.size() ? points[i + 1][dimensions - 1] : reference[dimensions - 1];
    const double height = top - points[i][dimensions - 1];
    if (height > 0) total += height * volume(slice, reference.first(dimensions - 1));
  }
  return total;
}

}  // namespace

double hypervolume(const std::vector<std::vector<double>>& points, std::span<const double> reference) {
  return volume(points, reference);
}

}  // namespace ergotune
