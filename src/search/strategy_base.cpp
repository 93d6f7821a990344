#include "search/strategy_base.hpp"

#include <algorithm>
#include <cmath>

namespace ergotune {

ErrorEstimate error_of(const Outcome& outcome) {
  if (outcome.standard_errors.empty()) return {};
  return {outcome.standard_errors.front(), outcome.degrees.empty() ? 0.0 : outcome.degrees.front()};
}

double half_width_of_difference(const Outcome& a, const Outcome& b) {
  const ErrorEstimate errors[] = {error_of(a), error_of(b)};
  const ErrorEstimate both = combined_error(errors);
  return half_width_95(both.standard_error, both.degrees);
}

namespace search {

double scalar_value(const Outcome& outcome) {
  if (!outcome.ok || outcome.values.empty()) return std::numeric_limits<double>::infinity();
  if (outcome.values.size() == 1) return outcome.values.front();
  double product = 1, sum = 0;
  bool positive = true;
  for (const double v : outcome.values) {
    product *= v;
    sum += v;
    positive = positive && v > 0;
  }
  return positive ? product : sum;
}

std::vector<ConfigurationIndex> best_of(const PriorResults& prior, std::size_t size, std::size_t count) {
  std::vector<std::pair<double, ConfigurationIndex>> usable;
  for (const auto& [index, outcome] : prior.outcomes)
    if (const double value = scalar_value(outcome); index < size && std::isfinite(value))
      usable.emplace_back(value, index);
  std::ranges::stable_sort(usable, {}, &std::pair<double, ConfigurationIndex>::first);
  std::vector<ConfigurationIndex> best;
  for (const auto& [value, index] : usable)
    if (best.size() < count) best.push_back(index);
  return best;
}

StrategyBase::StrategyBase(std::string name, const StrategyContext& context)
    : name_(std::move(name)), context_(context), random_(context.seed), memory_(context.space->size()) {
  // The best configuration of an earlier search is evaluated first; a misleading prior costs no more than that.
  for (const PriorResults& prior : context.priors) {
    for (const ConfigurationIndex index : best_of(prior, memory_.size(), 1)) propose(index);
  }
}

std::vector<ConfigurationIndex> StrategyBase::ask(std::size_t count) {
  std::vector<ConfigurationIndex> requested;
  requested.reserve(std::min<std::size_t>(count, 64));
  while (requested.size() < count) {
    if (queue_.empty()) {
      if (memory_.fresh_count() == 0 || (outstanding_ > 0 && !concurrent())) break;
      advance(count - requested.size());
      if (queue_.empty()) {
        const auto any = memory_.random_fresh(random_);
        if (!any) break;
        propose(*any);
      }
    }
    const ConfigurationIndex index = queue_.front();
    queue_.pop_front();
    if (memory_.state(index) != EvaluationCache::State::queued)
      continue;  // its outcome has arrived meanwhile,
                 // unrequested
    memory_.set_state(index, EvaluationCache::State::requested);
    ++outstanding_;
    requested.push_back(index);
  }
  return requested;
}

void StrategyBase::tell(ConfigurationIndex index, const Outcome& outcome) {
  if (index >= memory_.size()) return;
  if (memory_.state(index) == EvaluationCache::State::requested) --outstanding_;
  const bool revised = memory_.known(index);
  double value = scalar_value(outcome);
  const bool ok = outcome.ok && std::isfinite(value);
  if (!ok) value = std::numeric_limits<double>::infinity();
  memory_.record(index, ok, value);
  if (!revised) told_.push_back(index);
  if (revised && index == best_ && value > best_value_) {
    best_value_ = value;
    for (const ConfigurationIndex other : told_) improve(other, memory_.value(other));
  }
  improve(index, value);
  learn(index, value, outcome);
}

void StrategyBase::improve(ConfigurationIndex index, double value) {
  if (!(value < best_value_)) return;
  best_value_ = value;
  best_ = index;
}

void StrategyBase::learn(ConfigurationIndex, double, const Outcome&) {}

bool StrategyBase::propose(ConfigurationIndex index) {
  if (!memory_.fresh(index)) return false;
  memory_.set_state(index, EvaluationCache::State::queued);
  queue_.push_back(index);
  return true;
}

void StrategyBase::propose_all(const std::vector<ConfigurationIndex>& list) {
  for (const ConfigurationIndex index : list) propose(index);
}

void StrategyBase::clear_queue() {
  for (const ConfigurationIndex index : queue_)
    if (memory_.state(index) == EvaluationCache::State::queued) memory_.set_state(index, EvaluationCache::State::fresh);
  queue_.clear();
}

double StrategyBase::real(const std::string& option) const { return context_.options.at(option).as_real(); }
std::int64_t StrategyBase::integer(const std::string& option) const { return context_.options.at(option).as_integer(); }
std::string StrategyBase::text(const std::string& option) const { return context_.options.at(option).to_string(); }

EvaluationCache::EvaluationCache(std::uint64_t size) : size_(size), fresh_(size) {
  if (size <= kDenseLimit) {
    states_.assign(size, State::fresh);
    values_.assign(size, std::numeric_limits<double>::infinity());
  }
}

EvaluationCache::State EvaluationCache::state(ConfigurationIndex index) const {
  if (!states_.empty()) return states_[index];
  const auto it = sparse_.find(index);
  return it == sparse_.end() ? State::fresh : it->second.state;
}

double EvaluationCache::value(ConfigurationIndex index) const {
  if (!values_.empty()) return values_[index];
  const auto it = sparse_.find(index);
  return it == sparse_.end() ? std::numeric_limits<double>::infinity() : it->second.value;
}

void EvaluationCache::set_state(ConfigurationIndex index, State state) {
  State& stored = states_.empty() ? sparse_[index].state : states_[index];
  if (stored == State::fresh && state != State::fresh) --fresh_;
  if (stored != State::fresh && state == State::fresh) ++fresh_;
  stored = state;
}

void EvaluationCache::record(ConfigurationIndex index, bool ok, double value) {
  set_state(index, ok ? State::ok : State::failed);
  const double kept = ok ? value : std::numeric_limits<double>::infinity();
  if (values_.empty())
    sparse_[index].value = kept;
  else
    values_[index] = kept;
}

std::optional<ConfigurationIndex> EvaluationCache::random_fresh(Random& random) const {
  if (fresh_ == 0) return std::nullopt;
  for (int attempt = 0; attempt < 32; ++attempt) {
    const ConfigurationIndex index = random.below(size_);
    if (fresh(index)) return index;
  }
  // few are left: the next fresh one after a random position
  ConfigurationIndex index = random.below(size_);
  while (!fresh(index)) index = index + 1 == size_ ? 0 : index + 1;
  return index;
}

}  // namespace search
}  // namespace ergotune
