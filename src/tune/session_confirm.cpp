#include "tune/session_confirm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "ergotune/base/random.hpp"
#include "ergotune/base/statistics.hpp"
#include "ergotune/problem/quantity.hpp"

namespace ergotune {
namespace {

constexpr std::uint64_t kFirstId = 1ull << 62;  ///< beyond those of the search

Quantity combine_quantity(const std::vector<const Quantity*>& found) {
  Quantity combined = *found.front();
  std::vector<double> values;
  double own = 0;
  combined.n = 0;
  for (const Quantity* quantity : found) {
    values.push_back(quantity->value);
    own += quantity->standard_error * quantity->standard_error;
    combined.n += quantity->n;
  }
  const auto count = static_cast<double>(found.size());
  combined.value = mean(values);
  // The scatter of the rounds already contains their own errors; the larger of both is the honest one.
  combined.standard_error = std::sqrt(std::max(variance(values) / count, own / (count * count)));
  return combined;
}

}  // namespace

Measurement combine(const std::vector<Measurement>& rounds) {
  for (const Measurement& round : rounds) {
    if (!usable(round.status)) return round;
  }
  Measurement combined = rounds.front();
  for (auto& [name, quantity] : combined.quantities) {
    std::vector<const Quantity*> found;
    for (const Measurement& round : rounds) {
      if (const auto same = round.quantities.find(name); same != round.quantities.end())
        found.push_back(&same->second);
    }
    const QuantityInfo* info = quantity_info(name);
    if (!info || info->averaged()) quantity = combine_quantity(found);
  }
  combined.metrics.clear();
  combined.metric_errors.clear();
  combined.times.clear();
  for (const Measurement& round : rounds) {
    combined.times.insert(combined.times.end(), round.times.begin(), round.times.end());
    if (round.status == Status::not_converged) combined.status = round.status;
    for (const std::string& warning : round.warnings) {
      if (std::find(combined.warnings.begin(), combined.warnings.end(), warning) == combined.warnings.end()) {
        combined.warnings.push_back(warning);
      }
    }
  }
  return combined;
}

std::vector<double> probability_of_being_best(const std::vector<double>& values,
                                              const std::vector<double>& errors) {
  std::vector<double> wins(values.size(), 0.0);
  if (values.empty()) return wins;
  Random random(20240901);
  constexpr int kDraws = 20000;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::size_t best = 0;
    double best_value = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = values[i] + errors[i] * random.normal();
      if (i == 0 || value < best_value) {
        best = i;
        best_value = value;
      }
    }
    wins[best] += 1.0 / kDraws;
  }
  return wins;
}

bool measure_side_by_side(Evaluator& evaluator, std::vector<Candidate>& candidates, int rounds,
                          const std::function<void(Measurement&, const Configuration&)>& complete,
                          const std::function<bool()>& interrupted) {
  std::map<std::uint64_t, std::size_t> asked;
  std::uint64_t next_id = kFirstId;
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), 0);
  Random random(7);
  for (int round = 0; round < rounds; ++round) {
    random.shuffle(std::span(order));
    std::size_t sent = 0;
    while (sent < order.size() || !asked.empty()) {
      if (interrupted()) {
        evaluator.cancel();
        return false;
      }
      while (sent < order.size() && evaluator.pending() < std::max<std::size_t>(1, evaluator.capacity())) {
        const std::size_t which = order[sent++];
        EvaluationRequest request;
        request.id = next_id++;
        request.index = candidates[which].index;
        request.configuration = candidates[which].configuration;
        request.repeat = true;
        asked[request.id] = which;
        evaluator.submit(std::move(request));
      }
      auto result = evaluator.wait(0.1);
      if (!result) continue;
      const auto found = asked.find(result->id);
      if (found == asked.end()) continue;
      Candidate& candidate = candidates[found->second];
      complete(result->measurement, candidate.configuration);
      candidate.rounds.push_back(std::move(result->measurement));
      asked.erase(found);
    }
  }
  return true;
}

}  // namespace ergotune
