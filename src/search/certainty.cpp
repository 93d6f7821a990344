#include "ergotune/search/certainty.hpp"

#include <algorithm>
#include <cmath>

#include "ergotune/base/random.hpp"

namespace ergotune {
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

std::optional<Certainty> certainty_of(const std::vector<Outcome>& confirmed) {
  std::vector<double> values, errors;
  for (const Outcome& outcome : confirmed) {
    if (!outcome.ok || outcome.values.empty()) continue;
    values.push_back(outcome.values.front());
    errors.push_back(outcome.standard_errors.empty() ? 0.0 : outcome.standard_errors.front());
  }
  if (values.empty()) return std::nullopt;
  return Certainty{probability_of_being_best(values, errors).front(), expected_loss(values, errors)};
}

}  // namespace ergotune
