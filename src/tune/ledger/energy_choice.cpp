#include "tune/ledger/energy_choice.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "search/models/acquisition.hpp"
#include "search/models/encoding.hpp"

namespace ergotune {
namespace {

/// Standard deviations of the logarithm of the power: between configurations of one time, of its change with the
/// logarithm of the time, and of two measurements of one configuration.
constexpr double kOfParameters = 0.02, kOfTime = 0.3, kNoise = 0.01;
/// Of the logarithm of the power of all, before anything is known.
constexpr double kOfAll = 1;
constexpr std::size_t kFewest = 3;

struct Point {
  ConfigurationIndex index;
  double log_time, log_energy;  ///< the latter measured, or expected
  std::vector<float> features;
};

/// Of the parameters: half of the variance is a sum of effects of each, half is shared by those that are near in all.
double similarity(const Point& a, const Point& b) {
  if (a.features.empty()) return 1;
  double sum = 0, distance = 0;
  for (std::size_t f = 0; f < a.features.size(); ++f) {
    const double apart = std::abs(a.features[f] - b.features[f]);
    sum += std::exp(-apart);
    distance += apart;
  }
  return 0.5 * (sum / static_cast<double>(a.features.size()) + std::exp(-distance));
}

}  // namespace

std::vector<ConfigurationIndex> by_expected_improvement(const SearchSpace& space,
                                                        std::span<const TimedConfiguration> measured,
                                                        std::span<const TimedConfiguration> candidates) {
  std::vector<ConfigurationIndex> list;
  if (measured.size() < kFewest) {
    for (const TimedConfiguration& candidate : candidates) list.push_back(candidate.index);
    return list;
  }
  const std::vector<search::Feature> features = search::make_features(space);
  std::vector<std::uint32_t> positions(space.dimensions());
  std::vector<Point> points;
  for (const auto timed : {measured, candidates}) {
    for (const TimedConfiguration& one : timed) {
      Point& point = points.emplace_back(Point{one.index, std::log(one.time), std::log(one.energy), {}});
      space.values_at(one.index, positions);
      for (const search::Feature& feature : features) point.features.push_back(feature.at(positions.data()));
    }
  }
  const auto best = std::ranges::min_element(std::span(points).first(measured.size()), {}, &Point::log_energy);
  const double least = best->log_energy, centre = best->log_time;
  const std::size_t n = points.size();
  std::vector<double> mean(n), covariance(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    mean[i] = least + points[i].log_time - centre;
    for (std::size_t j = 0; j <= i; ++j)
      covariance[i * n + j] = covariance[j * n + i] =
          kOfAll * kOfAll + kOfParameters * kOfParameters * similarity(points[i], points[j]) +
          kOfTime * kOfTime * (points[i].log_time - centre) * (points[j].log_time - centre);
  }
  for (std::size_t known = 0; known < measured.size(); ++known) {
    const std::vector<double> column(&covariance[known * n], &covariance[known * n] + n);
    const double variance = column[known] + kNoise * kNoise, error = points[known].log_energy - mean[known];
    for (std::size_t i = 0; i < n; ++i) {
      mean[i] += column[i] / variance * error;
      for (std::size_t j = 0; j < n; ++j) covariance[i * n + j] -= column[i] / variance * column[j];
    }
  }
  std::vector<std::pair<double, ConfigurationIndex>> order;
  for (std::size_t i = measured.size(); i < n; ++i) {
    const double deviation = std::sqrt(std::max(1e-12, covariance[i * n + i]));
    order.emplace_back(-search::log_expected_improvement(least - mean[i], deviation), points[i].index);
  }
  std::ranges::stable_sort(order, {}, &std::pair<double, ConfigurationIndex>::first);
  for (const auto& [value, index] : order) list.push_back(index);
  return list;
}

}  // namespace ergotune
