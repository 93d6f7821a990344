// Gaussian process over the configurations of a search space, with its posterior kept up to date over a pool
// of candidates: adding an observation costs one pass over the pool (Rasmussen and Williams, "Gaussian
// Processes for Machine Learning", 2006, algorithm 2.1; the rank-one form of its Cholesky factor).
//
// The kernel is a product over the features (encoding.hpp) of one-dimensional kernels, looked up in tables
// where a feature takes few distinct values. Its variance and the mean are found in closed form, length
// scales and noise by the marginal likelihood with log-normal priors.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "search/models/encoding.hpp"

namespace ergotune::search {

class GaussianProcess {
 public:
  explicit GaussianProcess(const SearchSpace& space);
  GaussianProcess(GaussianProcess&&) noexcept;
  GaussianProcess& operator=(GaussianProcess&&) noexcept;
  ~GaussianProcess();

  /// Sets the candidates for predictions. Costs one pass per observation.
  void set_pool(std::vector<ConfigurationIndex> pool);
  const std::vector<ConfigurationIndex>& pool() const;

  /// Adds an observation's place; its value comes with set_values().
  void observe(ConfigurationIndex index);
  /// Forgets all but the first `count` observations; set_values() comes next.
  void keep_first(std::size_t count);
  std::size_t observations() const;
  /// The observed values, in the order they were observed: what they mean may change as more is known.
  void set_values(std::span<const double> values);
  /// Adjusts length scales and noise to the values set last; `effort` scales the number of trials. The
  /// posterior follows with the next set_pool() or refit_pool(), one of which must come before the next
  /// observe() or predict().
  void fit(double effort = 1);
  /// The fitted hyperparameters.
  struct Scales {
    std::vector<double> log_length;  ///< per feature
    double log_noise = 0, share_logit = 0;
  };
  Scales scales() const;
  /// Sets priors for the hyperparameters: their logarithms (logits) with standard deviation `spread`. If something was
  /// observed, they take effect with the next set_pool() or refit_pool().
  void set_hyperparameter_prior(const Scales& scales, double spread);
  /// Adds a feature, a number in [0, 1] for each configuration, with a prior for its length scale. Call it before the
  /// first observe().
  void add_feature(std::function<float(ConfigurationIndex)> value, double length);
  /// Each observation predicted from all the others: the error (observed less predicted) and its standard deviation.
  struct LeftOut {
    double error = 0, deviation = 0;
  };
  std::vector<LeftOut> leave_one_out() const;
  /// Share of the values' variance that the model foretells, each from all the others.
  double cross_validated_r2() const;
  /// Multiplications that it takes, about.
  double operations_of_fit() const;
  void refit_pool();

  /// Mean and standard deviation of a measurement of each candidate in the pool, in units of the values. The deviation
  /// includes the noise, which also covers differences between configurations that no feature explains.
  void predict(std::vector<float>& mean, std::vector<float>& deviation) const;
  /// Of the last prediction: the part of the deviations that is noise, and the least mean at an observation.
  double noise_deviation() const;
  double least_mean() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergotune::search
