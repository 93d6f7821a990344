#include "search/prior_mean.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>

#include "ergotune/base/statistics.hpp"
#include "search/strategy_base.hpp"

namespace ergotune::search {
namespace {

constexpr double kOdds = 4;                ///< that an earlier search of the same kernel tells something, beforehand
constexpr double kPseudoObservations = 3;  ///< that speak for its weight beforehand
constexpr std::size_t kLearnFrom = 200;    ///< outcomes that the untried ones are guessed from

}  // namespace

PriorMean::PriorMean(const SearchSpace& space, const std::vector<PriorResults>& priors) : space_(space) {
  for (const PriorResults& prior : priors) add(prior);
  for (Source& source : sources_) source.weight = source.start = 1.0 / static_cast<double>(sources_.size());
  if (!sources_.empty()) trust_ = kOdds / (1 + kOdds);
}

void PriorMean::add(const PriorResults& prior) {
  constexpr std::size_t kFewest = 3;
  Source source;
  std::vector<double> ok;
  std::vector<ConfigurationIndex> failed;
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const auto& [index, outcome] : prior.outcomes) {
    const double value = scalar_value(outcome);
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  for (const auto& [index, outcome] : prior.outcomes) {
    if (index >= space_.size()) continue;
    const double value = scalar_value(outcome);
    if (std::isfinite(value)) {
      // what is to be maximised comes negated
      ok.push_back(least > 0 ? std::log(value) : most < 0 ? -std::log(-value) : value);
      source.known[index] = ok.back();
    } else {
      failed.push_back(index);
    }
  }
  if (ok.size() < kFewest) return;
  const double centre = median(ok), best = *std::min_element(ok.begin(), ok.end());
  if (!(centre > best)) return;  // it tells nothing apart
  for (auto& [index, value] : source.known) value = std::min(value - centre, 0.0);
  for (const ConfigurationIndex index : failed) source.known.try_emplace(index, 0.3 * (centre - best));
  for (const auto& [index, value] : source.known) {
    source.learnt.push_back(index);
    source.spread += value * value;
  }
  source.spread /= static_cast<double>(source.known.size());
  // the map's order is no order
  std::sort(source.learnt.begin(), source.learnt.end(), [&](ConfigurationIndex a, ConfigurationIndex b) {
    const double x = source.known.at(a), y = source.known.at(b);
    return x < y || (x == y && a < b);
  });
  sources_.push_back(std::move(source));
}

void PriorMean::expect(const std::vector<ConfigurationIndex>& places) {
  for (Source& source : sources_) {
    std::vector<ConfigurationIndex> unknown;
    for (const ConfigurationIndex index : places)
      if (!source.known.contains(index)) unknown.push_back(index);
    if (unknown.empty()) continue;
    // a model of the best and of an even selection of the others
    GaussianProcess model(space_);
    std::vector<double> values;
    const std::size_t count = source.learnt.size();
    const std::size_t leading = std::min(count, kLearnFrom / 2);
    const std::size_t stride = std::max<std::size_t>(1, (count - leading + kLearnFrom / 2 - 1) / (kLearnFrom / 2));
    for (std::size_t i = 0; i < count; i += i < leading ? 1 : stride) {
      model.observe(source.learnt[i]);
      values.push_back(source.known.at(source.learnt[i]));
    }
    model.set_values(values);
    model.fit();
    model.set_pool(unknown);
    std::vector<float> mean, deviation;
    model.predict(mean, deviation);
    for (std::size_t i = 0; i < unknown.size(); ++i) source.known[unknown[i]] = mean[i];
  }
}

void PriorMean::weigh(const GaussianProcess& model, const std::vector<ConfigurationIndex>& places,
                      const std::vector<double>& values) {
  const std::size_t n = values.size(), count = sources_.size();
  if (empty() || n < 2) return;
  std::vector<std::vector<double>> columns{values};
  for (const Source& source : sources_) {
    std::vector<double>& column = columns.emplace_back();
    for (const ConfigurationIndex index : places) {
      const auto known = source.known.find(index);
      column.push_back(known == source.known.end() ? 0.0 : known->second);
    }
  }
  const std::vector<double> list = model.whitened_products(columns);
  const auto s = static_cast<Eigen::Index>(count);
  const Eigen::MatrixXd products = Eigen::Map<const Eigen::MatrixXd>(list.data(), s + 1, s + 1);
  const Eigen::MatrixXd together = products.bottomRightCorner(s, s);
  const Eigen::VectorXd with_values = products.bottomLeftCorner(s, 1);
  // what one observation is worth, whitened, against what it is worth as it stands
  Eigen::VectorXd pull(s), start(s);
  for (Eigen::Index i = 0; i < s; ++i) {
    const Source& source = sources_[static_cast<std::size_t>(i)];
    const double each = std::max(source.spread, together(i, i) / static_cast<double>(n));
    pull[i] = kPseudoObservations * each + 1e-12;
    start[i] = source.start;
  }
  Eigen::MatrixXd left = together;
  left.diagonal() += pull;
  Eigen::VectorXd weight = left.ldlt().solve(with_values + pull.cwiseProduct(start));
  weight = weight.cwiseMax(0.0);
  const double alone = products(0, 0);
  const double explained = alone - 2 * weight.dot(with_values) + weight.dot(together * weight);
  const double tiny = 1e-12 + 1e-9 * alone, freedom = static_cast<double>(n - 1);
  const double log_odds = std::log(kOdds) + 0.5 * freedom * std::log((alone + tiny) / (std::max(explained, 0.0) + tiny));
  trust_ = 1 / (1 + std::exp(-std::clamp(log_odds, -50.0, 50.0)));
  for (Eigen::Index i = 0; i < s; ++i) {
    const double variance = std::max(explained, 0.0) / freedom / (together(i, i) + pull[i]);
    const double certain = weight[i] > 0 ? std::max(0.0, 1 - variance / (weight[i] * weight[i])) : 0.0;
    sources_[static_cast<std::size_t>(i)].weight = weight[i] * certain;
  }
}

double PriorMean::mean(ConfigurationIndex index) const {
  double sum = 0;
  for (const Source& source : sources_) {
    const auto known = source.known.find(index);
    if (known != source.known.end()) sum += source.weight * known->second;
  }
  return trust_ * sum;
}

std::vector<ConfigurationIndex> PriorMean::best(std::size_t count) const {
  // mean over the sources, each in its own spread
  std::map<ConfigurationIndex, double> sums;
  for (const Source& source : sources_)
    for (const auto& [index, value] : source.known) sums[index] += value / std::sqrt(source.spread);
  std::vector<std::pair<double, ConfigurationIndex>> order;
  for (const auto& [index, sum] : sums) order.emplace_back(sum, index);
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end());
  std::vector<ConfigurationIndex> best;
  for (std::size_t i = 0; i < count; ++i) best.push_back(order[i].second);
  return best;
}

}  // namespace ergotune::search
