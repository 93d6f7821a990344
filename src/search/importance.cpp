#include "ergotune/search/importance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ergotune/base/statistics.hpp"
#include "search/gaussian_process.hpp"

namespace ergotune {
namespace {

constexpr std::size_t kFewest = 20;    ///< outcomes that tell anything
constexpr std::size_t kLearnt = 300;   ///< outcomes that the model is made of at most
constexpr std::size_t kSample = 4000;  ///< configurations that the model is asked about
constexpr std::size_t kPaired = 6;     ///< parameters that are looked at in pairs: the most important
constexpr double kShown = 0.01;
constexpr std::uint64_t kTried = 5;    ///< failures of a value, and no success, that rule it out

/// Predictions at a sample of the space, with its value positions.
struct Sample {
  std::size_t width = 0;
  std::vector<std::uint32_t> positions;
  std::vector<double> predictions;
  std::uint32_t at(std::size_t row, std::size_t parameter) const { return positions[row * width + parameter]; }
};

Sample predict(const SearchSpace& space, const std::vector<std::pair<ConfigurationIndex, double>>& known) {
  search::GaussianProcess model(space);
  std::vector<double> values;
  for (const auto& [index, value] : known) {
    model.observe(index);
    values.push_back(value);
  }
  model.set_values(values);
  model.fit();
  Random random(20261122);
  Sample sample;
  sample.width = space.dimensions();
  const std::vector<ConfigurationIndex> asked = space.sample_distinct(kSample, random);
  model.set_pool(asked);
  std::vector<float> mean, deviation;
  model.predict(mean, deviation);
  sample.predictions.assign(mean.begin(), mean.end());
  sample.positions.resize(asked.size() * sample.width);
  for (std::size_t i = 0; i < asked.size(); ++i)
    space.values_at(asked[i], std::span(sample.positions).subspan(i * sample.width, sample.width));
  return sample;
}

/// Variance of the mean given what cell a row is in, less what chance alone gives.
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
    if (count[c] < 2) continue;
    const double here = sum[c] / count[c], within = std::max(0.0, squares[c] / count[c] - here * here);
    result += count[c] / n * ((here - centre) * (here - centre) - within / (count[c] - 1));
  }
  return std::max(0.0, result);
}

std::vector<Importance::Share> shares_of(const SearchSpace& space, const Sample& sample) {
  std::vector<Importance::Share> shares;
  const double total = variance(sample.predictions);
  if (!(total > 0)) return shares;
  std::vector<std::size_t> cell(sample.predictions.size());
  std::vector<double> alone(space.dimensions(), 0);
  for (std::size_t p = 0; p < space.dimensions(); ++p) {
    for (std::size_t row = 0; row < cell.size(); ++row) cell[row] = sample.at(row, p);
    alone[p] = between(sample, space.parameters()[p].values.size(), cell) / total;
    shares.push_back({{p}, alone[p]});
  }
  std::stable_sort(shares.begin(), shares.end(), [](auto& a, auto& b) { return a.share > b.share; });
  const std::size_t paired = std::min(kPaired, shares.size());
  for (std::size_t i = 0; i < paired; ++i)
    for (std::size_t j = 0; j < i; ++j) {
      std::size_t p = shares[j].parameters.front(), q = shares[i].parameters.front();
      if (p > q) std::swap(p, q);
      const std::size_t width = space.parameters()[q].values.size();
      for (std::size_t row = 0; row < cell.size(); ++row) cell[row] = sample.at(row, p) * width + sample.at(row, q);
      const double both = between(sample, space.parameters()[p].values.size() * width, cell) / total;
      shares.push_back({{p, q}, std::max(0.0, both - alone[p] - alone[q])});
    }
  std::erase_if(shares, [](auto& share) { return share.share < kShown; });
  std::stable_sort(shares.begin(), shares.end(), [](auto& a, auto& b) { return a.share > b.share; });
  return shares;
}

}  // namespace

Importance importance_of(const SearchSpace& space,
                         const std::vector<std::pair<ConfigurationIndex, Outcome>>& outcomes) {
  Importance importance;
  std::vector<std::pair<ConfigurationIndex, double>> known;
  std::vector<std::vector<std::uint64_t>> ok(space.dimensions()), failed(space.dimensions());
  for (std::size_t p = 0; p < space.dimensions(); ++p) {
    ok[p].resize(space.parameters()[p].values.size());
    failed[p].resize(ok[p].size());
  }
  std::vector<std::uint32_t> at(space.dimensions());
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [index, outcome] : outcomes) {
    if (index >= space.size()) continue;
    space.values_at(index, at);
    const bool good = outcome.ok && !outcome.values.empty() && std::isfinite(outcome.values.front());
    for (std::size_t p = 0; p < at.size(); ++p) ++(good ? ok : failed)[p][at[p]];
    if (!good) continue;
    known.emplace_back(index, outcome.values.front());
    least = std::min(least, outcome.values.front());
  }
  for (std::size_t p = 0; p < at.size() && !known.empty(); ++p)
    for (std::size_t v = 0; v < ok[p].size(); ++v)
      if (ok[p][v] == 0 && failed[p][v] >= kTried) importance.ruled_out.push_back({p, v, failed[p][v]});
  if (known.size() < kFewest) return importance;
  if (known.size() > kLearnt) {  // evenly over the search
    for (std::size_t i = 0; i < kLearnt; ++i) known[i] = known[i * known.size() / kLearnt];
    known.resize(kLearnt);
  }
  if (least > 0)
    for (auto& [index, value] : known) value = std::log(value);
  importance.shares = shares_of(space, predict(space, known));
  return importance;
}

}  // namespace ergotune
