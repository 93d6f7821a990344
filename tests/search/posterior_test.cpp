// The Gaussian process against the textbook (Rasmussen and Williams, 2006), worked out here by plain
// elimination.
#include <gtest/gtest.h>

#include <cmath>

#include "fixtures.hpp"
#include "search/gaussian_process.hpp"

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
    const double r =
        std::sqrt(3.0) *
        std::abs(std::log2(1.0 + static_cast<double>(a)) - std::log2(1.0 + static_cast<double>(b))) / last / std::exp(scales.log_length);
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
    EXPECT_NEAR(deviation[at], std::sqrt(variance * (1 - dot(k, solve(gram(observed_), k)))), 2e-3) << at;
  }
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
  EXPECT_NEAR(model().foretold(), 1 - errors / total, 1e-3);
}

TEST_F(Posterior, ForetellsNothingFromNothing) {
  GaussianProcess two(space_), unknown = model(), equal = model();
  two.observe(1);
  two.observe(4);
  two.set_values(Numbers{1, 2});
  EXPECT_EQ(two.foretold(), 0);
  unknown.observe(5);
  EXPECT_EQ(unknown.foretold(), 0) << "a value is missing";
  equal.set_values(Numbers{2, 2, 2, 2, 2});
  EXPECT_EQ(equal.foretold(), 0);
  GaussianProcess three(space_);
  for (const ConfigurationIndex place : {1, 2, 3}) three.observe(place);
  three.set_values(Numbers{1, 2, 3.1});
  EXPECT_NE(three.foretold(), 0);
}

TEST_F(Posterior, WithoutValuesIsWhatWasSupposed) {
  GaussianProcess process(space_);
  process.set_pool({0, 5});
  std::vector<float> mean, deviation;
  process.predict(mean, deviation);
  EXPECT_EQ(mean, (std::vector<float>{0, 0}));
  EXPECT_EQ(deviation, (std::vector<float>{1, 1}));
  process.observe(3);
  process.predict(mean, deviation);
  EXPECT_EQ(deviation, (std::vector<float>{1, 1}));
}

TEST_F(Posterior, AFitNeedsThreeAndKeepsToWhatIsSupposed) {
  GaussianProcess two(space_);
  two.observe(1);
  two.observe(9);
  two.set_values(Numbers{1, 2});
  two.fit();
  EXPECT_NEAR(two.scales().log_length.at(0), 0, 1e-12) << "a length of 1";
  EXPECT_NEAR(two.scales().log_noise, std::log(1e-3), 1e-12);
  EXPECT_EQ(two.scales().share_logit, -1);

  GaussianProcess sure = model(), open = model();
  GaussianProcess::Scales supposed = sure.scales();
  supposed.log_length = {std::log(0.2)};
  sure.suppose(supposed, 0.01);
  sure.fit();
  EXPECT_NEAR(sure.scales().log_length.at(0), std::log(0.2), 0.05);
  EXPECT_NEAR(sure.scales().share_logit, -1, 0.05);
  open.suppose(supposed, 100);
  open.fit();
  EXPECT_GT(std::abs(open.scales().share_logit + 1), 0.2);
  EXPECT_GE(open.scales().log_noise, std::log(1e-6) - 1e-9);
  EXPECT_LE(open.scales().log_noise, std::log(0.5) + 1e-9);
}

double log_determinant(Table a) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += std::log(a[i][i]);
    for (std::size_t j = i + 1; j < a.size(); ++j)
      for (std::size_t k = a.size(); k-- > i;) a[j][k] -= a[j][i] / a[i][i] * a[i][k];
  }
  return sum;
}

/// Searches the textbook's likelihood, with the kernel's variance and the mean in closed form, one scale after the other.
class Likelihood : public Posterior {
 protected:
  /// Less the logarithm, and what is supposed: log-normal, the noise and the share half as sure again.
  double loss(const Scales& scales) const {
    const Table k = gram(observed_, scales);
    const Numbers ones(observed_.size(), 1.0), white = solve(k, ones);
    Numbers r = values_;
    for (double& v : r) v -= dot(white, values_) / dot(white, ones);
    const double n = static_cast<double>(r.size()), variance = dot(r, solve(k, r)) / n;
    const double noise = (scales.log_noise - std::log(1e-3)) / 1.5, share = (scales.share_logit + 1) / 1.5;
    return 0.5 * (n * std::log(variance) + log_determinant(k) + scales.log_length * scales.log_length + noise * noise + share * share);
  }
  Scales best() const {
    Scales scales;
    double least = loss(scales);
    for (const double step : {1.0, 0.5, 0.25})
      for (const auto& [scale, reach, low, high] : {std::tuple{&Scales::log_length, step, std::log(0.05), std::log(30.0)},
                                                    {&Scales::log_noise, 2 * step, std::log(1e-6), std::log(0.5)},
                                                    {&Scales::share_logit, step, -4.0, 4.0}})
        for (const double way : {reach, -reach}) {
          Scales tried = scales;
          tried.*scale = std::clamp(tried.*scale + way, low, high);
          const double here = loss(tried);
          if (here >= least) continue;
          least = here;
          scales = tried;
          break;
        }
    return scales;
  }
};

TEST_F(Likelihood, IsWhatAFitMakesLarge) {
  Random random(21);
  for (int trial = 1; trial <= 25; ++trial) {
    observed_ = space_.sample_distinct(3 + random.below(6), random);
    values_.clear();
    for (const auto place : observed_) values_.push_back(std::sin(0.2 * trial * static_cast<double>(place)) + 0.1 * trial * random.normal());
    GaussianProcess process = model();
    process.fit();
    const Scales expected = best();
    EXPECT_NEAR(process.scales().log_length.at(0), expected.log_length, 1e-9) << trial;
    EXPECT_NEAR(process.scales().log_noise, expected.log_noise, 1e-9) << trial;
    EXPECT_NEAR(process.scales().share_logit, expected.share_logit, 1e-9) << trial;
  }
}

// A step tries each of the scales up, else down as well; each trial factorises a matrix made of the features' kernels.
TEST_F(Likelihood, CostsAThirdOfTheCubeForEachTrial) {
  constexpr double n = 5, features = 1, scales = features + 2, trials = 3 * 1.7;
  EXPECT_NEAR(model().operations_of_fit(), trials * scales * (n * n * n / 3 + n * n * features), 1e-9);
}

// Of many a fit asks the best and an even selection of the others, as if there were no more.
TEST(Fit, OfManyIsThatOfTheBestAndSomeOfTheOthers) {
  const SearchSpace space = line_space(320);
  Random random(6);
  std::vector<std::pair<double, ConfigurationIndex>> known;
  for (ConfigurationIndex i = 0; i < space.size(); ++i)
    known.emplace_back(std::sin(0.05 * static_cast<double>(i)) + 0.3 * random.normal(), i);
  GaussianProcess of_all(space), of_some(space);
  Numbers all, some;
  std::sort(known.begin(), known.end());
  for (const auto& [value, index] : known) {
    of_all.observe(index);
    all.push_back(value);
  }
  for (std::size_t i = 0; i < known.size(); i += i < 80 ? 1 : 3) {  // 80 of the other 240
    of_some.observe(known[i].second);
    some.push_back(known[i].first);
  }
  ASSERT_EQ(some.size(), 160u);
  of_all.set_values(all);
  of_some.set_values(some);
  of_all.fit();
  of_some.fit();
  EXPECT_EQ(of_all.scales().log_length, of_some.scales().log_length);
  EXPECT_EQ(of_all.scales().log_noise, of_some.scales().log_noise);
  EXPECT_EQ(of_all.scales().share_logit, of_some.scales().share_logit);
  EXPECT_EQ(of_all.operations_of_fit(), of_some.operations_of_fit()) << "and it takes no longer";
}

}  // namespace
}  // namespace ergotune::search
