// The Gaussian process against the textbook (Rasmussen and Williams, 2006), worked out here by plain elimination.
#include <gtest/gtest.h>

#include <cmath>

#include "fixtures.hpp"
#include "search/models/gaussian_process.hpp"

namespace ergotune::search {
namespace {

using namespace search_tests;
using Numbers = std::vector<double>;
using Table = std::vector<Numbers>;

Numbers solve(Table a, Numbers b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i + 1; j < n; ++j) {
      const double factor = a[j][i] / a[i][i];
      for (std::size_t k = i; k < n; ++k) a[j][k] -= factor * a[i][k];
      b[j] -= factor * b[i];
    }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// As they are supposed before anything is known.
struct Scales {
  double log_length = 0, log_noise = std::log(1e-3), share_logit = -1;
};

/// A line of 0 to 11, whose positions go by log2(1 + x): the kernel before anything is fitted.
class Posterior : public testing::Test {
 protected:
  static double kernel(ConfigurationIndex a, ConfigurationIndex b, const Scales& scales) {
    const double share = 1 / (1 + std::exp(-scales.share_logit)), last = std::log2(12.0);
    const double r = std::sqrt(3.0) *
                     std::abs(std::log2(1.0 + static_cast<double>(a)) - std::log2(1.0 + static_cast<double>(b))) /
                     last / std::exp(scales.log_length);
    return 1 - share + share * (1 + r) * std::exp(-r);
  }
  static double kernel(ConfigurationIndex a, ConfigurationIndex b) { return kernel(a, b, {}); }
  static Table gram(const std::vector<ConfigurationIndex>& places, const Scales& scales = {}) {
    Table k;
    for (const auto a : places) {
      k.emplace_back();
      for (const auto b : places) k.back().push_back(kernel(a, b, scales) + (a == b ? std::exp(scales.log_noise) : 0));
    }
    return k;
  }
  Numbers row(ConfigurationIndex at, const std::vector<ConfigurationIndex>& places) const {
    Numbers k;
    for (const auto place : places) k.push_back(kernel(at, place));
    return k;
  }
  /// The mean by generalised least squares.
  double centre() const {
    const Numbers ones(observed_.size(), 1.0), white = solve(gram(observed_), ones);
    return dot(white, values_) / dot(white, ones);
  }
  Numbers residual() const {
    Numbers r = values_;
    for (double& v : r) v -= centre();
    return r;
  }
  GaussianProcess model() const {
    GaussianProcess model(space_);
    for (const auto place : observed_) model.observe(place);
    model.set_values(values_);
    return model;
  }

  SearchSpace space_ = line_space(12);
  std::vector<ConfigurationIndex> observed_{0, 2, 3, 7, 10};
  Numbers values_{1, 0.5, 0.6, 2, 1.5};
};

TEST_F(Posterior, IsThatOfTheTextbook) {
  GaussianProcess process = model();
  std::vector<ConfigurationIndex> all;
  for (ConfigurationIndex i = 0; i < space_.size(); ++i) all.push_back(i);
  process.set_pool(all);
  std::vector<float> mean, deviation;
  process.predict(mean, deviation);
  const Numbers r = residual(), weights = solve(gram(observed_), r);
  const double variance = dot(r, weights) / static_cast<double>(r.size());
  for (const ConfigurationIndex at : all) {
    const Numbers k = row(at, observed_);
    EXPECT_NEAR(mean[at], centre() + dot(k, weights), 1e-3) << at;
    // of a measurement: with the noise
    const double explained = dot(k, solve(gram(observed_), k));
    EXPECT_NEAR(deviation[at], std::sqrt(variance * (1 - explained + std::exp(Scales{}.log_noise))), 2e-3) << at;
  }
}

// What a search compares candidates with where it looks for what is better apart from noise.
TEST_F(Posterior, SeparatesTheNoise) {
  GaussianProcess process = model();
  process.set_pool(observed_);
  std::vector<float> mean, deviation;
  process.predict(mean, deviation);
  EXPECT_NEAR(process.least_mean(), *std::min_element(mean.begin(), mean.end()), 1e-3);
  const Numbers r = residual();
  const double variance = dot(r, solve(gram(observed_), r)) / static_cast<double>(r.size());
  EXPECT_NEAR(process.noise_deviation(), std::sqrt(variance * std::exp(Scales{}.log_noise)), 1e-4);
}

// Each value from all the others, with the mean of all.
TEST_F(Posterior, ForetellsWhatIsLeftOut) {
  const Numbers r = residual();
  double errors = 0, total = 0, mean = 0;
  for (const double v : values_) mean += v / static_cast<double>(values_.size());
  for (std::size_t i = 0; i < r.size(); ++i) {
    auto places = observed_;
    Numbers others = r;
    places.erase(places.begin() + static_cast<std::ptrdiff_t>(i));
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const double error = r[i] - dot(row(observed_[i], places), solve(gram(places), others));
    errors += error * error;
    total += (values_[i] - mean) * (values_[i] - mean);
  }
  EXPECT_NEAR(model().cross_validated_r2(), 1 - errors / total, 1e-3);
}

}  // namespace
}  // namespace ergotune::search
