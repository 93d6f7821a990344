#include "measure/combine.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/statistics.hpp"
#include "problem/tables/quantity.hpp"

namespace ergotune {
namespace {

struct Mean {
  double value;
  ErrorEstimate error;
};

// The scatter between measurements includes their own errors; the larger of both is used.
Mean mean_of(const std::vector<double>& values, const std::vector<ErrorEstimate>& errors) {
  const auto count = static_cast<double>(values.size());
  ErrorEstimate own = combined_error(errors);
  own.standard_error /= count;
  const double scatter = std::sqrt(variance(values) / count);
  return {mean(values), scatter > own.standard_error ? ErrorEstimate{scatter, count - 1} : own};
}

void combine_quantities(const std::vector<Measurement>& rounds, Measurement& combined) {
  for (auto& [name, quantity] : combined.quantities) {
    const QuantityInfo* info = quantity_info(name);
    if (info && !info->averaged()) continue;
    std::vector<double> values;
    std::vector<ErrorEstimate> errors;
    std::int64_t n = 0;
    for (const Measurement& round : rounds) {
      const auto same = round.quantities.find(name);
      if (same == round.quantities.end()) continue;
      values.push_back(same->second.value);
      errors.push_back({same->second.standard_error, same->second.degrees});
      n += same->second.n;
    }
    const Mean found = mean_of(values, errors);
    quantity.value = found.value;
    quantity.standard_error = found.error.standard_error;
    quantity.degrees = found.error.degrees;
    quantity.n = n;
  }
}

void combine_metrics(const std::vector<Measurement>& rounds, Measurement& combined) {
  combined.metric_errors.clear();
  combined.metric_degrees.clear();
  for (auto& [name, value] : combined.metrics) {
    std::vector<double> values;
    std::vector<ErrorEstimate> errors;
    for (const Measurement& round : rounds) {
      if (!round.metrics.contains(name)) continue;
      values.push_back(round.metrics.at(name));
      errors.push_back({round.standard_error(name), round.degrees(name)});
    }
    const Mean found = mean_of(values, errors);
    value = found.value;
    if (found.error.standard_error > 0) combined.metric_errors[name] = found.error.standard_error;
    if (found.error.degrees > 0) combined.metric_degrees[name] = found.error.degrees;
  }
}

bool counts(const Measurement& round) { return usable(round.status) || round.status == Status::wrong_result; }

/// Leaves out failed measurements unless all failed.
std::vector<Measurement> measured_ones(const std::vector<Measurement>& rounds) {
  std::vector<Measurement> list;
  std::copy_if(rounds.begin(), rounds.end(), std::back_inserter(list), counts);
  return list.empty() ? rounds : list;
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

}  // namespace

Measurement combine(const std::vector<Measurement>& all) {
  const std::vector<Measurement> rounds = measured_ones(all);
  for (const Measurement& round : rounds) {
    if (!usable(round.status)) return round;
  }
  Measurement combined = rounds.front();
  for (const Measurement& round : rounds) {
    combined.quantities.insert(round.quantities.begin(), round.quantities.end());
    combined.metrics.insert(round.metrics.begin(), round.metrics.end());
  }
  combine_quantities(rounds, combined);
  combine_metrics(rounds, combined);
  combined.times.clear();
  for (const Measurement& round : rounds) {
    combined.times.insert(combined.times.end(), round.times.begin(), round.times.end());
    if (round.status == Status::not_converged) combined.status = round.status;
    combined.finished_at = std::max(combined.finished_at, round.finished_at);
    for (const std::string& warning : round.warnings) add_once(combined.warnings, warning);
  }
  for (const Measurement& round : all) {
    if (!counts(round)) add_once(combined.warnings, "a round is left out: " + round.message);
  }
  return combined;
}

}  // namespace ergotune
