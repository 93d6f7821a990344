#include "tune/confirmation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace ergotune {

ConfirmationSource::ConfirmationSource(const std::vector<ConfigurationIndex>& candidates, int rounds)
    : order_(candidates.size()), rounds_left_(rounds), sent_(candidates.size()) {
  for (const ConfigurationIndex index : candidates) candidates_.push_back({index, {}});
  std::iota(order_.begin(), order_.end(), std::size_t{0});
}

std::vector<Wanted> ConfirmationSource::next(std::size_t room) {
  if (sent_ == order_.size()) {
    if (under_way_ > 0 || rounds_left_ == 0) return {};
    --rounds_left_;
    sent_ = 0;
    random_.shuffle(std::span(order_));
  }
  std::vector<Wanted> list;
  while (sent_ < order_.size() && list.size() < room) {
    Wanted wanted;
    wanted.index = candidates_[order_[sent_++]].index;
    wanted.kind = RowKind::confirmation;
    list.push_back(wanted);
  }
  under_way_ += list.size();
  return list;
}

void ConfirmationSource::take(const Wanted& wanted, const Measurement& measurement, bool) {
  --under_way_;
  for (Candidate& candidate : candidates_) {
    if (candidate.index == wanted.index) candidate.rounds.push_back(measurement);
  }
}

namespace {

/// Calls `each` with draws of values with normal errors.
template <class Each>
void sample(const std::vector<double>& values, const std::vector<double>& errors, int draws, Each&& each) {
  Random random(20240901);
  std::vector<double> drawn(values.size());
  for (int draw = 0; draw < draws; ++draw) {
    for (std::size_t i = 0; i < values.size(); ++i) drawn[i] = values[i] + errors[i] * random.normal();
    each(drawn);
  }
}
constexpr int kDraws = 20000;

}  // namespace

double expected_loss(const std::vector<double>& values, const std::vector<double>& errors) {
  if (values.size() < 2 || values.front() == 0) return 0;
  double sum = 0;
  sample(values, errors, kDraws,
         [&](const std::vector<double>& drawn) { sum += drawn.front() - *std::min_element(drawn.begin(), drawn.end()); });
  return sum / kDraws / std::abs(values.front());
}

std::vector<double> probability_of_being_best(const std::vector<double>& values,
                                              const std::vector<double>& errors) {
  std::vector<double> wins(values.size(), 0.0);
  if (values.empty()) return wins;
  sample(values, errors, kDraws, [&](const std::vector<double>& drawn) {
    wins[static_cast<std::size_t>(std::min_element(drawn.begin(), drawn.end()) - drawn.begin())] += 1.0 / kDraws;
  });
  return wins;
}

}  // namespace ergotune
