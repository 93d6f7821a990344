#include "search/importance.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/statistics.hpp"
#include "search/models/gaussian_process.hpp"

namespace ergotune {
namespace {

constexpr std::size_t kFewest = 20;    ///< fewest results for an analysis
constexpr std::size_t kLearnt = 240;   ///< largest number of results that the model is fitted to
constexpr std::size_t kSample = 3000;  ///< largest number of combinations for which the model predicts
constexpr std::size_t kPaired = 6;     ///< number of parameters, the most important ones, whose pairs are analysed
constexpr std::size_t kGroups = 8;     ///< of the jackknife
constexpr double kLargest = 1e18;      ///< largest number of combinations that can be numbered
constexpr double kShown = 0.01;
constexpr double kSignificance = 0.005;
constexpr std::uint64_t kTried = 5;  ///< a value is ruled out after this many failures without success

using Known = std::vector<std::pair<ConfigurationIndex, double>>;

/// The space of all combinations of the values that occur. Restrictions are ignored, so that parameters are
/// independent.
std::optional<SearchSpace> combinations(const std::vector<Parameter>& parameters, const std::vector<Judged>& results) {
  std::vector<Parameter> occurring;
  double size = 1;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    std::set<Value> values;
    for (const Judged& one : results) values.insert(one.configuration[p]);
    Parameter& parameter = occurring.emplace_back();
    parameter.name = parameters[p].name;
    parameter.values.assign(values.begin(), values.end());
    size *= static_cast<double>(values.size());
  }
  if (size > kLargest) return std::nullopt;
  return SearchSpace::build(std::move(occurring), {});
}

/// Combinations, and the model's predictions for them.
struct Sample {
  std::vector<ConfigurationIndex> requested;
  std::size_t width = 0;
  double left_out = 0;  ///< share of all combinations that the sample lacks
  std::vector<std::uint32_t> positions;
  std::vector<double> predictions;
  std::uint32_t at(std::size_t row, std::size_t parameter) const { return positions[row * width + parameter]; }
};

Sample draw(const SearchSpace& space) {
  Random random(20261122);
  Sample sample;
  sample.width = space.dimensions();
  sample.requested = space.sample_distinct(kSample, random);
  sample.left_out = 1 - static_cast<double>(sample.requested.size()) / static_cast<double>(space.size());
  sample.positions.resize(sample.requested.size() * sample.width);
  for (std::size_t i = 0; i < sample.requested.size(); ++i)
    space.values_at(sample.requested[i], std::span(sample.positions).subspan(i * sample.width, sample.width));
  return sample;
}

/// Results that a model was not fitted to, and its predictions for them.
struct HeldBack {
  std::vector<double> measured, predicted;
};

/// Predicts with a model of all known results except one group (nullopt: no exception). `scales`: those of the model of
/// all results; fitted here if not set yet. `held_back`: receives results and predictions of the excluded group.
void predict(Sample& sample, const SearchSpace& space, const Known& known, std::optional<std::size_t> without,
             std::optional<search::GaussianProcess::Scales>& scales, HeldBack* held_back = nullptr) {
  search::GaussianProcess model(space);
  if (scales) model.set_hyperparameter_prior(*scales, 1);
  std::vector<double> values;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (without && i % kGroups == *without) continue;
    model.observe(known[i].first);
    values.push_back(known[i].second);
  }
  model.set_values(values);
  if (!scales) {
    model.fit();
    scales = model.scales();
  }
  std::vector<ConfigurationIndex> pool = sample.requested;
  for (std::size_t i = without.value_or(0); held_back && i < known.size(); i += kGroups) {
    pool.push_back(known[i].first);
    held_back->measured.push_back(known[i].second);
  }
  model.set_pool(std::move(pool));
  std::vector<float> mean, deviation;
  model.predict(mean, deviation);
  const auto end = mean.begin() + static_cast<std::ptrdiff_t>(sample.requested.size());
  sample.predictions.assign(mean.begin(), end);
  if (held_back) held_back->predicted.insert(held_back->predicted.end(), end, mean.end());
}

bool predicts(const HeldBack& held_back) {
  const auto n = static_cast<double>(held_back.measured.size());
  const double r = correlation(held_back.measured, held_back.predicted);
  return r * std::sqrt((n - 2) / std::max(1e-12, 1 - r * r)) > student_t_quantile(1 - kSignificance, n - 2);
}

/// Share of the variance of held-back results that the model predicts.
double explained_by(const HeldBack& held_back) {
  const double centre = mean(held_back.measured);
  double squares = 0, all = 0;
  for (std::size_t i = 0; i < held_back.measured.size(); ++i) {
    squares += std::pow(held_back.measured[i] - held_back.predicted[i], 2);
    all += std::pow(held_back.measured[i] - centre, 2);
  }
  return std::max(0.0, 1 - squares / all);
}

/// Variance between cells of the sample: that of the cells' means, minus the variance that these have because the
/// sample lacks some combinations.
double between(const Sample& sample, std::size_t cells, const std::vector<std::size_t>& cell_of) {
  std::vector<double> sum(cells, 0), squares(cells, 0), count(cells, 0);
  for (std::size_t row = 0; row < cell_of.size(); ++row) {
    const double p = sample.predictions[row];
    sum[cell_of[row]] += p;
    squares[cell_of[row]] += p * p;
    count[cell_of[row]] += 1;
  }
  const double n = static_cast<double>(cell_of.size()), centre = mean(sample.predictions);
  double result = 0;
  for (std::size_t c = 0; c < cells; ++c) {
    // a single row does not show the variance of the mean; a complete sample has none
    if (count[c] < (sample.left_out > 0 ? 2 : 1)) continue;
    const double here = sum[c] / count[c], away = here - centre,
                 within = std::max(0.0, squares[c] / count[c] - here * here);
    const double chance = sample.left_out > 0 ? sample.left_out * within / (count[c] - 1) : 0;
    result += count[c] / n * (away * away - chance);
  }
  return std::max(0.0, result);
}

/// Variance of the sample's predictions. Of a complete sample, its parts sum to it.
double variance_of(const Sample& sample) {
  const double n = static_cast<double>(sample.predictions.size());
  return variance(sample.predictions) * (n - 1) / n;
}

std::vector<double> alone(const SearchSpace& space, const Sample& sample, double total) {
  std::vector<double> shares;
  std::vector<std::size_t> cell(sample.predictions.size());
  for (std::size_t p = 0; p < space.dimensions(); ++p) {
    for (std::size_t row = 0; row < cell.size(); ++row) cell[row] = sample.at(row, p);
    shares.push_back(between(sample, space.parameters()[p].values.size(), cell) / total);
  }
  return shares;
}

/// Shares of each parameter, then of each pair.
std::vector<double> shares_of(const SearchSpace& space, const Sample& sample,
                              const std::vector<std::pair<std::size_t, std::size_t>>& pairs) {
  const double total = std::max(variance_of(sample), 1e-300);
  std::vector<double> shares = alone(space, sample, total);
  std::vector<std::size_t> cell(sample.predictions.size());
  for (const auto& [p, q] : pairs) {
    const std::size_t width = space.parameters()[q].values.size();
    for (std::size_t row = 0; row < cell.size(); ++row) cell[row] = sample.at(row, p) * width + sample.at(row, q);
    const double both = between(sample, space.parameters()[p].values.size() * width, cell) / total;
    shares.push_back(std::max(0.0, both - shares[p] - shares[q]));
  }
  return shares;
}

/// All pairs of the most important parameters.
std::vector<std::pair<std::size_t, std::size_t>> pairs_of(const std::vector<double>& shares) {
  std::vector<std::size_t> order(shares.size());
  for (std::size_t p = 0; p < order.size(); ++p) order[p] = p;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  order.resize(std::min(kPaired, order.size()));
  std::sort(order.begin(), order.end());
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) pairs.emplace_back(order[j], order[i]);
  return pairs;
}

void analyse(const SearchSpace& space, const Known& known, Importance& importance) {
  Sample sample = draw(space);
  std::optional<search::GaussianProcess::Scales> scales;
  predict(sample, space, known, std::nullopt, scales);
  std::vector<double> values;
  for (const auto& [index, value] : known) values.push_back(value);
  if (!(variance(values) > 0)) return;
  if (!(variance(sample.predictions) > 0)) {
    importance.explained = 0;
    return;
  }
  const auto pairs = pairs_of(alone(space, sample, variance_of(sample)));
  const std::vector<double> shares = shares_of(space, sample, pairs);
  std::vector<std::vector<double>> without(shares.size());
  HeldBack held_back;
  for (std::size_t group = 0; group < kGroups; ++group) {
    predict(sample, space, known, group, scales, &held_back);
    const std::vector<double> some = shares_of(space, sample, pairs);
    for (std::size_t i = 0; i < some.size(); ++i) without[i].push_back(some[i]);
  }
  importance.explained = explained_by(held_back);
  if (!predicts(held_back)) return;
  std::vector<Importance::Share>& list = importance.shares;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] < kShown) continue;
    const double centre = mean(without[i]);
    double squares = 0;
    for (const double one : without[i]) squares += (one - centre) * (one - centre);
    const double reach = half_width_95(std::sqrt(squares * (kGroups - 1.0) / kGroups), kGroups - 1.0);
    Importance::Share& share = list.emplace_back();
    share.parameters = {i};
    if (i >= space.dimensions()) {
      const auto& [p, q] = pairs[i - space.dimensions()];
      share.parameters = {p, q};
    }
    share.share = shares[i];
    share.low = std::max(0.0, shares[i] - reach);
    share.high = std::min(1.0, shares[i] + reach);
  }
  std::ranges::stable_sort(list, std::greater(), &Importance::Share::share);
}

}  // namespace

std::vector<Importance::NeverWorkedValue> ruled_out(const std::vector<Parameter>& parameters,
                                                    const std::vector<Judged>& results) {
  std::vector<Importance::NeverWorkedValue> list;
  if (std::ranges::none_of(results, [](const Judged& one) { return one.value.has_value(); })) return list;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    std::map<Value, std::pair<std::uint64_t, std::uint64_t>> counts;  // ok, failed
    for (const Judged& one : results) {
      auto& [ok, failed] = counts[one.configuration[p]];
      ++(one.value ? ok : failed);
    }
    for (const auto& [value, count] : counts)
      if (count.first == 0 && count.second >= kTried) list.push_back({p, value, count.second});
  }
  return list;
}

Importance importance_of(const std::vector<Parameter>& parameters, std::vector<Judged> results) {
  Importance importance;
  std::sort(results.begin(), results.end(),
            [](const Judged& a, const Judged& b) { return a.configuration < b.configuration; });
  importance.ruled_out = ruled_out(parameters, results);
  std::erase_if(results, [](const Judged& one) { return !one.value || !std::isfinite(*one.value); });
  if (results.size() < kFewest) return importance;
  const std::optional<SearchSpace> space = combinations(parameters, results);
  if (!space) return importance;
  double least = std::numeric_limits<double>::infinity();
  Known known;
  for (const Judged& one : results) {
    known.emplace_back(space->index_of(one.configuration).value(), *one.value);
    least = std::min(least, *one.value);
  }
  Random random(1);
  random.shuffle(std::span<Known::value_type>(known));
  known.resize(std::min(known.size(), kLearnt));
  if (least > 0)
    for (auto& [index, value] : known) value = std::log(value);
  analyse(*space, known, importance);
  return importance;
}

nlohmann::ordered_json importance_document(const std::vector<Parameter>& parameters, const Importance& importance) {
  using Json = nlohmann::ordered_json;
  Json shares = Json::array(), ruled_out = Json::array();
  for (const auto& share : importance.shares) {
    Json names = Json::array();
    for (const std::size_t p : share.parameters) names.push_back(parameters[p].name);
    shares.push_back({{"parameters", names}, {"share", share.share}, {"low", share.low}, {"high", share.high}});
  }
  for (const auto& out : importance.ruled_out)
    ruled_out.push_back(
        {{"parameter", parameters[out.parameter].name}, {"value", out.value.to_string()}, {"tried", out.tried}});
  return {{"provenance", "modelled"},
          {"shares", shares},
          {"explained", importance.explained ? Json(*importance.explained) : Json()},
          {"ruled_out", ruled_out}};
}

}  // namespace ergotune
