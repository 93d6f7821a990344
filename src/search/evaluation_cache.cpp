#include "search/evaluation_cache.hpp"

namespace ergotune::search {

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
  // nearly used up: the next fresh one after a random place
  ConfigurationIndex index = random.below(size_);
  while (!fresh(index)) index = index + 1 == size_ ? 0 : index + 1;
  return index;
}

}  // namespace ergotune::search
