#include "tune/plan_memory.hpp"

#include <algorithm>
#include <cmath>

#include "ergotune/base/clock.hpp"
#include "ergotune/measure/metrics.hpp"

namespace ergotune::plans {

PlanMemory::PlanMemory(const Problem& problem, const SearchSpace& space, Evaluator& evaluator,
                       const Constants& constants)
    : problem_(problem),
      space_(space),
      evaluator_(evaluator),
      constants_(constants),
      started_(host_seconds()) {}

const Measurement* PlanMemory::find(ConfigurationIndex index) const {
  const auto it = known_.find(index);
  return it == known_.end() ? nullptr : &it->second;
}

PlanPoint PlanMemory::point(ConfigurationIndex index) const {
  return {index, space_.configuration(index), known_.at(index)};
}

const Measurement& PlanMemory::remember(ConfigurationIndex index, Measurement measurement) {
  auto& quantities = measurement.quantities;
  if (evaluator_.provenance() == Provenance::replayed && !quantities.contains("energy") &&
      quantities.contains("power") && quantities.contains("time")) {
    const Quantity power = quantities.at("power"), time = quantities.at("time");
    Quantity energy = power;
    energy.value = power.value * time.value;
    energy.standard_error = std::hypot(power.standard_error * time.value, time.standard_error * power.value);
    energy.method = "recorded power times recorded time";
    quantities["energy"] = energy;
  }
  if (!problem_.metrics.empty() && usable(measurement.status)) {
    evaluate_metrics(measurement, problem_.metrics, space_.parameters(), space_.configuration(index),
                     constants_);
  }
  if (evaluator_.provenance() == Provenance::measured) {
    seconds_ = host_seconds() - started_;
  } else {
    seconds_ += measurement.compile_seconds + measurement.verify_seconds + measurement.measure_seconds +
                measurement.tuner_seconds;
  }
  return known_.insert_or_assign(index, std::move(measurement)).first->second;
}

void PlanMemory::evaluate(std::span<const ConfigurationIndex> indices,
                          const std::function<bool(ConfigurationIndex, const Measurement&)>& each) {
  std::size_t next = 0;
  bool going_on = true;
  while ((going_on && next < indices.size()) || evaluator_.pending() > 0) {
    while (going_on && next < indices.size() && evaluator_.pending() < evaluator_.capacity()) {
      const ConfigurationIndex index = indices[next++];
      if (const Measurement* known = find(index)) {
        if (each) going_on = each(index, *known);
        continue;
      }
      EvaluationRequest request;
      request.id = next;
      request.index = index;
      request.configuration = space_.configuration(index);
      request.objective_quantity = "energy";
      evaluator_.submit(std::move(request));
    }
    if (evaluator_.pending() == 0) continue;
    if (auto result = evaluator_.wait(1.0)) {
      const Measurement& measurement = remember(result->index, std::move(result->measurement));
      if (each && going_on) going_on = each(result->index, measurement);
    }
  }
}

std::optional<PlanPoint> PlanMemory::best(std::span<const ConfigurationIndex> indices,
                                          Objective objective) const {
  // Everything is told first: what is best may depend on best(time) and the like.
  std::vector<ConfigurationIndex> usable_ones;
  for (const ConfigurationIndex index : indices) {
    const Measurement* measurement = find(index);
    if (measurement != nullptr && objective.outcome(*measurement).ok) usable_ones.push_back(index);
  }
  if (usable_ones.empty()) return std::nullopt;
  ConfigurationIndex best = usable_ones.front();
  for (const ConfigurationIndex index : usable_ones) {
    if (objective.better(known_.at(index), known_.at(best))) best = index;
  }
  return point(best);
}

void PartEvaluator::submit(EvaluationRequest request) {
  const auto whole = memory_.space().index_of(request.configuration);
  if (!whole) {
    EvaluationResult result{request.id, request.index, {}};
    result.measurement.status = Status::unsupported;
    result.measurement.message = "not in the search space";
    ready_.push_back(std::move(result));
    return;
  }
  if (!request.repeat) {
    if (const Measurement* known = memory_.find(*whole)) {
      ready_.push_back({request.id, request.index, *known});
      return;
    }
  }
  waiting_[request.id] = {request.index, *whole, request.repeat};
  request.index = *whole;
  memory_.evaluator().submit(std::move(request));
}

std::optional<EvaluationResult> PartEvaluator::wait(double seconds) {
  if (!ready_.empty()) {
    EvaluationResult result = std::move(ready_.back());
    ready_.pop_back();
    return result;
  }
  if (waiting_.empty()) return std::nullopt;
  auto result = memory_.evaluator().wait(seconds);
  if (!result) return std::nullopt;
  const auto it = waiting_.find(result->id);
  if (it == waiting_.end()) return std::nullopt;
  const Asked asked = it->second;
  waiting_.erase(it);
  // A measurement stopped early by racing is kept as what it is: known to be worse.
  result->measurement = memory_.remember(asked.whole_index, std::move(result->measurement));
  result->index = asked.part_index;
  return result;
}

void PartEvaluator::cancel() {
  memory_.evaluator().cancel();
  waiting_.clear();
  ready_.clear();
}

}  // namespace ergotune::plans
