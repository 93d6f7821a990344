#include "search/models/feasibility.hpp"

#include <cmath>

#include "base/statistics.hpp"

namespace ergotune::search {

void Feasibility::observe(ConfigurationIndex index, bool ok) {
  if (!known_.insert(index).second) return;
  observed_.push_back(index);
  failed_.push_back(ok ? 0 : 1);
  failures_ += !ok;
}

void Feasibility::set_pool(const std::vector<ConfigurationIndex>& pool) {
  pool_ = pool;
  drawn_ = false;
}

void Feasibility::predict(std::vector<float>& log_probability) {
  log_probability.assign(pool_.size(), 0.0f);
  if (failures_ == 0 || observed_.size() < 3) return;
  while (model_.observations() < observed_.size()) model_.observe(observed_[model_.observations()]);
  model_.set_values(failed_);
  if (observed_.size() >= next_fit_) {
    model_.fit();
    next_fit_ = observed_.size() + 1 + observed_.size() / 8;
    if (drawn_) model_.refit_pool();
  }
  if (!drawn_) model_.set_pool(pool_);
  drawn_ = true;
  std::vector<float> mean, deviation;
  model_.predict(mean, deviation);
  constexpr float kDoubt = 0.1f;  // no boundary is known better
  for (std::size_t i = 0; i < pool_.size(); ++i)
    log_probability[i] =
        std::log(std::max(1e-6f, static_cast<float>(normal_cdf((0.5 - mean[i]) / std::hypot(deviation[i], kDoubt)))));
}

}  // namespace ergotune::search
