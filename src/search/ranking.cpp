#include "search/ranking.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ergotune/error.hpp"

namespace ergotune {

bool was_held_down(const Measurement& measurement) {
  return std::any_of(measurement.warnings.begin(), measurement.warnings.end(), [](const std::string& warning) {
    return warning.starts_with("asked ") && warning.ends_with("power cap");
  });
}

namespace {

/// If the leader's clock was held down, replaces it by the first result within its interval that ran as requested: no
/// configuration wins because it ran at another clock.
void prefer_requested_settings(Objective& objective, std::span<const Measurement* const> measurements,
                               const std::function<bool(std::size_t)>& confirmed, std::vector<std::size_t>& order) {
  if (order.empty() || objective.kind() != Objective::Kind::single || !was_held_down(*measurements[order.front()]))
    return;
  const Outcome leader = objective.outcome(*measurements[order.front()]);
  const bool leader_confirmed = confirmed && confirmed(order.front());
  for (auto place = order.begin() + 1; place != order.end(); ++place) {
    const Outcome other = objective.outcome(*measurements[*place]);
    if (leader_confirmed && !confirmed(*place)) continue;
    if (leader.standard_errors.empty() || other.standard_errors.empty()) return;
    if (other.values.front() - leader.values.front() > half_width_of_difference(leader, other)) continue;
    if (was_held_down(*measurements[*place])) continue;
    std::rotate(order.begin(), place, place + 1);
    return;
  }
}

}  // namespace

std::vector<Ranked> rank(Objective& objective, std::span<const Measurement* const> measurements,
                         const std::function<bool(std::size_t)>& confirmed) {
  // The search's values of confirmed configurations do not count, in best(NAME) neither: reading the same results from
  // a store must yield the same order.
  objective.forget();
  for (const Measurement* measurement : measurements) objective.outcome(*measurement);
  std::vector<std::size_t> order = objective.order(measurements);
  if (confirmed && objective.kind() != Objective::Kind::pareto) {
    const auto winner = std::find_if(order.begin(), order.end(), confirmed);
    if (winner != order.end()) std::rotate(order.begin(), winner, winner + 1);
  }
  prefer_requested_settings(objective, measurements, confirmed, order);
  std::vector<Ranked> ranked;
  ranked.reserve(order.size());
  for (const std::size_t position : order) {
    const Measurement& measurement = *measurements[position];
    ranked.push_back({position, objective.outcome(measurement), objective.value(measurement)});
  }
  return ranked;
}

/// Of fewer results, two that agree by chance hide that another became better: the deviation is not robust against
/// that. One that became worse, as the leader of a search does that was lucky, does not show that others may be better.
constexpr std::size_t kFew = 5;

Repeats repeatability_of(const Objective& objective, std::span<const MeasuredTwice> pairs) {
  std::vector<double> logarithms;
  for (const auto& [searched, confirmed] : pairs) {
    const auto before = objective.value(*searched), after = objective.value(*confirmed);
    if (before && after && *before * *after > 0) logarithms.push_back(std::log(*after / *before));
  }
  Repeats repeats;
  repeats.n = logarithms.size();
  if (logarithms.empty()) return repeats;
  const double centre = median(logarithms), better = objective.direction() == Direction::maximise ? 1 : -1;
  double squares = 0;
  for (double& x : logarithms) {
    x -= centre;
    if (x * better > 0) squares += x * x;
    x = std::abs(x);
  }
  constexpr double kOfNormal = 1.4826;  // standard deviation over median absolute deviation
  const auto n = static_cast<double>(repeats.n);
  double deviation = kOfNormal * median(logarithms);
  if (repeats.n > 1 && repeats.n < kFew) deviation = std::max(deviation, std::sqrt(squares / (n - 1)));
  repeats.factor = std::exp(centre);
  repeats.deviation = deviation * std::sqrt(1 + 1 / n);
  return repeats;
}

bool Repeats::scatter() const {
  constexpr double kTwice = 0.69;
  return deviation > kTwice;
}

std::string repeats_note(const Repeats& repeats, int confirmation_repeats) {
  constexpr double kRepeats = 0.05;
  // With noise above this, few repeats that agree by chance make the probability too high if the candidates hardly
  // differ: 92 % on average where 68 % were right (simulated, noise 70 %, candidates 20 %, two or three repeats).
  constexpr double kNoisy = 0.2;
  constexpr int kFewRepeats = 3;
  if (repeats.n < 2 || (std::abs(std::log(repeats.factor)) < kRepeats && repeats.deviation < kRepeats)) return {};
  if (repeats.scatter())
    return "confirmed values differ from those of the search by a factor of 2 and more, so that another configuration "
           "may be the best, whatever the probability, which is that of the confirmed ones alone: repeat the search on "
           "a quiet machine";
  const double change = 100 * (repeats.factor - 1);
  return fmt::format(
      "confirmed values were {} in the search (median of {}{}); values that are not confirmed may differ as much{}",
      std::abs(change) < 0.5 ? std::string("partly higher, partly lower than")
                             : fmt::format("{:.0f} % {} than", std::abs(change), change < 0 ? "lower" : "higher"),
      repeats.n,
      repeats.n < kFew ? std::string() : fmt::format("; a single one differs by ±{:.3g} %", 100 * repeats.deviation),
      repeats.deviation > kNoisy && confirmation_repeats > 0 && confirmation_repeats <= kFewRepeats
          ? fmt::format(", and a probability from {} repeat{} may be too high (a larger --budget, on a quiet machine, "
                        "repeats them)",
                        confirmation_repeats, confirmation_repeats == 1 ? "" : "s")
          : std::string());
}

double expected_gain(const Outcome& searched, const Outcome& confirmed, const Repeats& repeats) {
  const double value = searched.values.front(), leader = confirmed.values.front();
  if (value == 0 || leader == 0) return 0;
  const auto relative = [](const Outcome& outcome) {
    return error_of(outcome).standard_error / outcome.values.front();
  };
  const double ahead = value * leader > 0 ? (leader > 0 ? 1 : -1) * std::log(leader / (value * repeats.factor))
                                          : (leader - value) / std::abs(leader);
  const double deviation = std::hypot(repeats.deviation, relative(searched), relative(confirmed));
  if (!(deviation > 0)) return std::max(0.0, ahead);
  const double z = ahead / deviation, density = std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
  return deviation * density + ahead * normal_cdf(z);
}

std::optional<Unconfirmed> unconfirmed(const Objective& objective, const Measurement& result, const Measurement& leader,
                                       const Repeats& repeats) {
  const std::optional<double> value = objective.value(result);
  if (objective.kind() == Objective::Kind::pareto || !value) return std::nullopt;
  Objective judge = objective;
  return Unconfirmed{*value * repeats.factor, expected_gain(judge.outcome(result), judge.outcome(leader), repeats)};
}

void validate_measured_quantities(const Objective& objective, std::span<const Measurement* const> measurements) {
  std::set<std::string> there;
  for (const Measurement* measurement : measurements) {
    if (!usable(measurement->status)) continue;
    for (const auto& [name, quantity] : measurement->quantities) there.insert(name);
    for (const auto& [name, value] : measurement->metrics) there.insert(name);
  }
  if (there.empty()) return;
  for (const std::string& name : objective.quantities())
    if (!there.contains(name))
      throw UserError(fmt::format("these results cannot be ranked by \"{}\": none of them has \"{}\"; they have {}",
                                  objective.name(), name, fmt::join(there, ", ")));
}

}  // namespace ergotune
