#include "search/models/feasibility.hpp"

#include <algorithm>
#include <cmath>

#include "base/statistics.hpp"

namespace ergotune::search {

void Feasibility::observe(ConfigurationIndex index, bool ok, double block_need) {
  if (!known_.insert(index).second) return;
  if (block_need > 0) need_.observe(index, std::log(block_need));
  largest_ = std::max(largest_, block_need);
  if (ok) limit_ = std::max(limit_, block_need);
  if (!ok && block_need > limit_) {
    refused_.emplace_back(index, block_need);
    return;
  }
  failed_.observe(index, ok ? 0 : 1);
  failures_ += !ok;
  std::erase_if(refused_, [&](const auto& refused) {
    if (refused.second > limit_) return false;
    failed_.observe(refused.first, 1);
    ++failures_;
    return true;
  });
}

void Feasibility::set_pool(const std::vector<ConfigurationIndex>& pool) {
  pool_ = pool;
  need_.drawn = failed_.drawn = false;
}

void Feasibility::predict(std::vector<float>& log_probability) {
  log_probability.assign(pool_.size(), 0.0f);
  // allocation is in units; and no boundary of unknown failures is known better than to a tenth of the step
  if (largest_ > 0.5) need_.add_below(std::log(limit_), 0.05, pool_, log_probability);
  if (failures_ > 0) failed_.add_below(0.5, 0.1, pool_, log_probability);
}

void Feasibility::Learned::observe(ConfigurationIndex index, double value) {
  observed.push_back(index);
  values.push_back(value);
}

void Feasibility::Learned::add_below(double limit, double doubt, const std::vector<ConfigurationIndex>& pool,
                                     std::vector<float>& log_probability) {
  if (observed.size() < 3) return;
  while (model.observations() < observed.size()) model.observe(observed[model.observations()]);
  model.set_values(values);
  if (observed.size() >= next_fit) {
    model.fit();
    next_fit = observed.size() + 1 + observed.size() / 8;
    if (drawn) model.refit_pool();
  }
  if (!drawn) model.set_pool(pool);
  drawn = true;
  std::vector<float> mean, deviation;
  model.predict(mean, deviation);
  for (std::size_t i = 0; i < pool.size(); ++i)
    log_probability[i] +=
        std::log(std::max(1e-6f, static_cast<float>(normal_cdf((limit - mean[i]) / std::hypot(deviation[i], doubt)))));
}

}  // namespace ergotune::search
