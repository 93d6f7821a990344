#include "search/acquisition.hpp"

#include <cmath>
#include <numbers>

#include "ergotune/base/statistics.hpp"
#include "search/gaussian_process.hpp"
#include "search/strategy_base.hpp"

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

PriorMean::PriorMean(const SearchSpace& space,
                     const std::vector<std::pair<ConfigurationIndex, Outcome>>& prior) {
  constexpr std::size_t kLearnFrom = 400, kPredictFor = 20000;
  std::vector<ConfigurationIndex> places;
  std::vector<double> values;
  double worst = -std::numeric_limits<double>::infinity();
  for (const auto& [index, outcome] : prior) {
    const double value = scalar_value(outcome);
    if (index >= space.size()) continue;
    places.push_back(index);
    values.push_back(std::isfinite(value) && value > 0 ? std::log(value)
                                                       : std::numeric_limits<double>::infinity());
    if (std::isfinite(values.back())) worst = std::max(worst, values.back());
  }
  if (!std::isfinite(worst)) return;
  for (double& value : values) value = std::min(value, worst);
  const double centre = median(values);
  for (std::size_t i = 0; i < places.size(); ++i) known_[places[i]] = values[i] - centre;
  if (space.size() > kPredictFor || places.size() < 3) return;

  // the configurations it never tried get what a model of it expects of them
  GaussianProcess model(space);
  std::vector<double> learned;
  const std::size_t stride = places.size() / kLearnFrom + 1;
  for (std::size_t i = 0; i < places.size(); i += stride) {
    model.observe(places[i]);
    learned.push_back(values[i] - centre);
  }
  model.set_values(learned);
  model.fit();
  std::vector<ConfigurationIndex> rest;
  for (ConfigurationIndex index = 0; index < space.size(); ++index)
    if (known_.count(index) == 0) rest.push_back(index);
  model.set_pool(rest);
  std::vector<float> mean, deviation;
  model.predict(mean, deviation);
  for (std::size_t i = 0; i < rest.size(); ++i) known_[rest[i]] = mean[i];
}

double PriorMean::mean(ConfigurationIndex index) const {
  if (known_.empty()) return 0;
  const auto it = known_.find(index);
  return it == known_.end() ? 0.0 : it->second;
}

double PriorMean::weight(std::span<const double> prior_means, std::span<const double> values) const {
  if (known_.empty()) return 0;
  const double m = ergotune::mean(prior_means), v = ergotune::mean(values);
  double together = 0, alone = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    together += (prior_means[i] - m) * (values[i] - v);
    alone += (prior_means[i] - m) * (prior_means[i] - m);
  }
  constexpr double kPseudoObservations = 3;
  double spread = 0;
  for (const auto& entry : known_) spread += entry.second * entry.second;
  const double pull = kPseudoObservations * spread / static_cast<double>(known_.size());
  return std::max(0.0, (together + pull) / (alone + pull + 1e-300));
}

}  // namespace ergotune::search
