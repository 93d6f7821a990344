#include "search/models/prior_features.hpp"

#include <algorithm>
#include <cmath>

#include "base/statistics.hpp"
#include "search/strategy_base.hpp"

namespace ergotune::search {
namespace {

constexpr std::size_t kFewest = 3;       ///< results that tell anything
constexpr std::size_t kLearnFrom = 200;  ///< results to which its model is fitted
constexpr std::size_t kJudged = 30;      ///< results needed to test whether they predict each other
constexpr double kForetold = 0.1;        ///< share of the variance below which they do not
constexpr double kSpread = 0.8;          ///< of the logarithm of a scale, from one search to another
constexpr double kLength = 1;            ///< of the features, which reach from 0 to 1
constexpr double kFailed = 0.3;          ///< how far past the median a failure counts, in spans from there to the best

using Known = std::vector<std::pair<double, ConfigurationIndex>>;

/// Logarithms, ascending; all values above the median are equal, and failures are beyond it. Empty if the values do not
/// differ.
Known values_of(const PriorResults& prior, std::uint64_t size) {
  Known known;
  std::vector<double> ok;
  for (const auto& [index, outcome] : prior.outcomes) {
    if (index >= size) continue;
    known.emplace_back(scalar_value(outcome), index);
    if (std::isfinite(known.back().first)) ok.push_back(known.back().first);
  }
  if (ok.size() < kFewest) return {};
  const auto [least, most] = std::minmax_element(ok.begin(), ok.end());
  const double low = *least, high = *most;
  const auto seen = [&](double value) {
    // what is to be maximised comes negated
    return low > 0 ? std::log(value) : high < 0 ? -std::log(-value) : value;
  };
  const double centre = seen(median(ok)), best = seen(low);
  if (!(centre > best)) return {};
  for (auto& [value, index] : known)
    value = std::isfinite(value) ? std::min(seen(value) - centre, 0.0) : kFailed * (centre - best);
  std::sort(known.begin(), known.end());
  return known;
}

}  // namespace

PriorFeatures::PriorFeatures(const SearchSpace& space, const std::vector<PriorResults>& priors) : space_(space) {
  for (const PriorResults& prior : priors) add(prior);
}

float PriorFeatures::level_at(std::size_t rank, std::size_t count) {
  // what lies within a hundredth of all is hardly distinguishable, a tenth differs from a hundredth as a half from a
  // tenth
  const double hundredths = 100 * static_cast<double>(rank) / static_cast<double>(count);
  return static_cast<float>(std::max(0.0, 1 - std::log1p(hundredths) / std::log1p(50.0)));
}

void PriorFeatures::add(const PriorResults& prior) {
  const Known known = values_of(prior, space_.size());
  if (known.empty()) return;
  Source source(space_);
  for (std::size_t rank = 0; rank < known.size(); ++rank) {
    source.level.try_emplace(known[rank].second, level_at(rank, known.size()));
    source.values.push_back(known[rank].first);
  }
  // a model of the best and of an even selection of the others
  std::vector<double> values;
  const std::size_t leading = std::min(known.size(), kLearnFrom / 2);
  const std::size_t stride = std::max<std::size_t>(1, (known.size() - leading + kLearnFrom / 2 - 1) / (kLearnFrom / 2));
  for (std::size_t i = 0; i < known.size(); i += i < leading ? 1 : stride) {
    source.model.observe(known[i].second);
    values.push_back(known[i].first);
  }
  source.model.set_values(values);
  source.model.fit(2);
  source.model.refit_pool();
  if (known.size() >= kJudged && source.model.cross_validated_r2() < kForetold) return;
  sources_.push_back(std::move(source));
}

void PriorFeatures::teach(GaussianProcess& model) const {
  if (empty()) return;
  GaussianProcess::Scales mean = sources_.front().model.scales();
  const auto count = static_cast<double>(sources_.size());
  const auto average = [&](auto member) {
    double sum = 0;
    for (const Source& source : sources_) sum += member(source.model.scales());
    return sum / count;
  };
  for (std::size_t f = 0; f < mean.log_length.size(); ++f)
    mean.log_length[f] = average([f](const GaussianProcess::Scales& s) { return s.log_length[f]; });
  mean.log_noise = average([](const GaussianProcess::Scales& s) { return s.log_noise; });
  mean.share_logit = average([](const GaussianProcess::Scales& s) { return s.share_logit; });
  model.set_hyperparameter_prior(mean, kSpread);
  for (const Source& source : sources_)
    model.add_feature(
        [&source](ConfigurationIndex index) {
          const auto known = source.level.find(index);
          return known == source.level.end() ? 0.0f : known->second;
        },
        kLength);
}

void PriorFeatures::expect(const std::vector<ConfigurationIndex>& places) {
  for (Source& source : sources_) {
    std::vector<ConfigurationIndex> unknown;
    for (const ConfigurationIndex index : places)
      if (!source.level.contains(index)) unknown.push_back(index);
    if (unknown.empty()) continue;
    source.model.set_pool(unknown);
    std::vector<float> mean, deviation;
    source.model.predict(mean, deviation);
    for (std::size_t i = 0; i < unknown.size(); ++i) {
      const auto rank = std::lower_bound(source.values.begin(), source.values.end(), static_cast<double>(mean[i]));
      source.level[unknown[i]] = level_at(static_cast<std::size_t>(rank - source.values.begin()), source.values.size());
    }
  }
}

}  // namespace ergotune::search
