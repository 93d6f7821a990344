// Combines the estimates of several sensors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "measure/energy/energy.hpp"

namespace ergotune {
namespace {

/// Finds two estimates of one scope that are both precise to 10 % but contradict each other. Returns a message, or an
/// empty string if there are none.
std::string contradiction(const std::vector<SlopeEstimate>& estimates) {
  constexpr double kKnown = 0.1, kApart = 1.3;
  const SlopeEstimate *low = nullptr, *high = nullptr;
  for (const auto& e : estimates) {
    if (!e.valid || e.half_width() > kKnown * e.value) continue;
    if (low && low->scope != e.scope) continue;
    if (!low || e.value < low->value) low = &e;
    if (!high || e.value > high->value) high = &e;
  }
  if (!low || high->value <= kApart * low->value) return {};
  return fmt::format("{} reads {:.4g} and {} reads {:.4g}: neither is credible", low->sensor, low->value, high->sensor,
                     high->value);
}

/// Returns the estimates that enter the mean.
std::vector<const SlopeEstimate*> precise_ones(const std::vector<SlopeEstimate>& estimates) {
  const bool metered = std::ranges::any_of(estimates, [](const auto& e) { return e.valid && e.metered; });
  std::vector<const SlopeEstimate*> good;
  double best = INFINITY;
  for (const auto& e : estimates)
    if (e.valid && e.metered == metered) best = std::min(best, e.half_width());
  for (const auto& e : estimates)
    if (e.valid && e.metered == metered && e.half_width() <= 3 * best) good.push_back(&e);
  return good;
}

}  // namespace

SlopeEstimate combine(const std::vector<SlopeEstimate>& estimates) {
  SlopeEstimate none;
  if (none.why_not = contradiction(estimates); !none.why_not.empty()) return none;
  const std::vector<const SlopeEstimate*> good = precise_ones(estimates);
  if (good.empty()) {
    for (const auto& e : estimates) none.why_not += (none.why_not.empty() ? "" : "; ") + e.why_not;
    return none;
  }
  SlopeEstimate out = *good.front();
  if (good.size() == 1) return out;
  // Sensors of one GPU measure the same power, so that their errors are correlated: the standard error does not shrink,
  // and half of the sensors' difference is added.
  const auto count = static_cast<double>(good.size());
  double value = 0, error = 0, low = INFINITY, high = -INFINITY, worst = 0;
  out.n = 0;
  out.method.clear();
  out.sensor.clear();
  out.warnings.clear();
  out.drift = 0;
  for (const auto* e : good) {
    value += e->value / count;
    error += e->standard_error / count;
    low = std::min(low, e->value);
    high = std::max(high, e->value);
    worst = std::max(worst, e->standard_error);
    out.degrees = std::max(out.degrees, e->degrees);
    out.n += e->n;
    out.covered.from = std::min(out.covered.from, e->covered.from);
    out.covered.to = std::max(out.covered.to, e->covered.to);
    out.method += (out.method.empty() ? "" : " and ") + e->method;
    out.sensor += (out.sensor.empty() ? "" : ",") + e->sensor;
    out.warnings.insert(out.warnings.end(), e->warnings.begin(), e->warnings.end());
    if (std::abs(e->drift) > std::abs(out.drift)) out.drift = e->drift;
    out.repeatability = std::max(out.repeatability, e->repeatability);
    out.systematic = std::max(out.systematic, e->systematic);
  }
  out.value = value;
  const double difference = high - low;
  out.standard_error = error;
  if (difference > 3 * std::sqrt(2.0) * worst) {
    out.standard_error = std::hypot(error, difference / 4);
    if (difference > 0.02 * value)
      out.warnings.push_back(fmt::format("sensors disagree by {:.1f} %", 100 * difference / value));
  }
  return out;
}

}  // namespace ergotune
