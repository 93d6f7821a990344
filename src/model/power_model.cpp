#include "model/power_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include "base/statistics.hpp"
#include "model/power_fit.hpp"

namespace ergotune {
namespace {

using model::FitEnd;
using model::Parameters;
using model::PowerFit;
using model::Terms;

// No power sensor is more accurate: prevents zero-width intervals for noise-free data.
constexpr double kLeastRelativeError = 2e-4;
constexpr int kProfilePoints = 25;
// Cross-validation favours a term if it lowers the prediction error by more than chance would.
constexpr double kClearlyBetter = 0.8;

/// Upper quantile of F(2, degrees), in closed form.
double f2_quantile(double level, double degrees) { return 0.5 * degrees * (std::pow(level, -2.0 / degrees) - 1.0); }

/// Residual variance: the estimated one, at least that of the known errors (1) or of any sensor.
double residual_variance(const PowerFit& fit, const Terms& terms, double cost) {
  const double estimated = cost / fit.degrees(terms);
  const double least = fit.errors_known() ? 1.0 : kLeastRelativeError * kLeastRelativeError;
  return std::max(estimated, least);
}

/// Whether the terms of `larger` explain significantly more than those of `smaller`.
bool needed(const PowerFit& fit, const Terms& smaller, const FitEnd& small_end, const Terms& larger,
            const FitEnd& large_end, double level) {
  if (!large_end.ok) return false;
  if (!small_end.ok) return true;
  const double more = fit.degrees(smaller) - fit.degrees(larger);
  if (more <= 0) return false;
  const double statistic = (small_end.cost - large_end.cost) / more / residual_variance(fit, larger, large_end.cost);
  const double degrees = fit.degrees(larger);
  const double t = student_t_quantile(1.0 - 0.5 * level, degrees);
  return statistic > (more < 1.5 ? t * t : f2_quantile(level, degrees));
}

/// The set where cost(x) <= threshold around x0, as an interval: the outermost crossings of a scan over [low,
/// high], each refined by bisection (a ridge's profile has kinks and may have side valleys).
std::pair<double, double> profile_interval(const std::function<double(double)>& cost, double x0, double low,
                                           double high, double threshold) {
  std::vector<double> grid = {x0};
  for (int i = 0; i < kProfilePoints; ++i) grid.push_back(low + (high - low) * i / (kProfilePoints - 1));
  std::ranges::sort(grid);
  std::vector<bool> inside;
  for (const double x : grid) inside.push_back(x == x0 || cost(x) <= threshold);
  const auto crossing = [&](double in, double out) {
    for (int i = 0; i < 9; ++i) {
      const double middle = 0.5 * (in + out);
      (cost(middle) <= threshold ? in : out) = middle;
    }
    return 0.5 * (in + out);
  };
  std::size_t first = 0, last = grid.size() - 1;
  while (!inside[first]) ++first;
  while (!inside[last]) --last;
  return {first == 0 ? low : crossing(grid[first], grid[first - 1]),
          last + 1 == grid.size() ? high : crossing(grid[last], grid[last + 1])};
}

/// The interval of a parameter whose profile has a single minimum: outward from the optimum, then bisection.
std::pair<double, double> walk_interval(const std::function<double(double)>& cost, double x0, double step, double low,
                                        double high, double threshold) {
  const auto side = [&](double direction, double bound) {
    double in = x0, reach = step;
    for (int i = 0; i < 12; ++i) {
      double out = x0 + direction * reach;
      const bool at_end = direction > 0 ? out >= bound : out <= bound;
      if (at_end) out = bound;
      if (cost(out) > threshold) {
        for (int k = 0; k < 7; ++k) {
          const double middle = 0.5 * (in + out);
          (cost(middle) <= threshold ? in : out) = middle;
        }
        return 0.5 * (in + out);
      }
      if (at_end) return bound;
      in = out;
      reach *= 1.7;
    }
    return in;
  };
  return {side(-1, low), side(1, high)};
}

PowerCurve to_curve(const PowerFit& fit, const Terms& terms, const Parameters& p) {
  PowerCurve curve;
  const double clock = fit.clock_scale(), power = fit.power_scale();
  curve.idle_w = p[model::kIdle] * power;
  curve.dynamic_w_per_mhz = p[model::kDynamic] * power / clock;
  curve.voltage_slope_per_mhz = terms.ridge ? p[model::kSlope] / clock : 0.0;
  curve.ridge_mhz = p[model::kRidge] * clock;
  if (terms.cap) curve.max_power_w = p[model::kCap] * power;
  return curve;
}

std::vector<PowerSample> clean(std::span<const PowerSample> samples, std::vector<std::string>& notes) {
  std::vector<PowerSample> kept;
  for (const PowerSample& s : samples) {
    if (std::isfinite(s.clock_mhz) && std::isfinite(s.power_w) && s.clock_mhz > 0 && s.power_w > 0) kept.push_back(s);
  }
  if (kept.size() < samples.size()) {
    notes.push_back(
        fmt::format("{} samples without a positive clock and power left out", samples.size() - kept.size()));
  }
  return kept;
}

/// Builds the model from a fit with chosen terms.
class Builder {
 public:
  Builder(const PowerFit& fit, const PowerModelOptions& options, PowerModel& model)
      : fit_(fit), options_(options), model_(model) {}

  void build(const Terms& terms, const FitEnd& rough) {
    terms_ = terms;
    best_ = fit_.fit(terms, {}, std::span(&rough.at, 1), true, true);
    variance_ = residual_variance(fit_, terms, best_.cost);
    const double t = student_t_quantile(0.5 + 0.5 * options_.confidence, fit_.degrees(terms));
    threshold_ = best_.cost + variance_ * t * t;
    model_.curve = to_curve(fit_, terms, best_.at);

    const double clock = fit_.clock_scale(), power = fit_.power_scale();
    model_.idle_w = parameter(model::kIdle, power, 0.0, 1.5);
    model_.dynamic_w_per_mhz = parameter(model::kDynamic, power / clock, 0.0, 4.0);
    if (terms.ridge) {
      model_.voltage_slope_per_mhz = parameter(model::kSlope, 1.0 / clock, 0.0, 8.0);
      model_.ridge_mhz = ridge();
    }
    if (terms.cap) model_.max_power_w = parameter(model::kCap, power, 0.3, 1.3);
    if (terms.memory) model_.memory_w_per_mhz = parameter(model::kMemory, power / clock, -10, 10);
    if (terms.temperature) model_.temperature_w_per_c = parameter(model::kTemperature, power / 100.0, -10, 10);
    model_.optimal_clock_mhz = optimum();
    covariance();
  }
  const FitEnd& best() const { return best_; }

 private:
  Estimate parameter(model::Place place, double scale, double low, double high) const {
    const double value = best_.at[place];
    const double error = std::sqrt(variance_ * std::max(0.0, best_.covariance[place * model::kPlaces + place]));
    const double step = std::clamp(2.0 * error, 1e-4 * std::max(value, 0.01), 0.3 * (high - low));
    Parameters last = best_.at;
    const auto cost = [&](double x) {
      model::FixedPlaces fixed{};
      fixed[place] = x;
      const Parameters from[] = {last, best_.at};
      const FitEnd end = fit_.fit(terms_, fixed, from, true);
      if (end.ok) last = end.at;
      return end.cost;
    };
    const auto [lower, upper] = walk_interval(cost, value, step, low, high, threshold_);
    return {value * scale, lower * scale, upper * scale};
  }

  Estimate ridge() const {
    const double clock = fit_.clock_scale();
    const auto cost = [&](double x) {
      model::FixedPlaces fixed{};
      fixed[model::kRidge] = x;
      Parameters steep = best_.at;
      steep[model::kSlope] = std::min(4.0, 2.0 * steep[model::kSlope] + 0.3);
      const Parameters from[] = {best_.at, steep};
      return fit_.fit(terms_, fixed, from, true).cost;
    };
    const auto [low, high] = profile_interval(cost, best_.at[model::kRidge], fit_.lowest(), 1.0, threshold_);
    return {best_.at[model::kRidge] * clock, low * clock, high * clock};
  }

  Estimate optimum() const {
    const double clock = fit_.clock_scale();
    const double value = model_.curve.optimal_clock(model_.low_mhz, model_.high_mhz);
    const double low = model_.low_mhz / clock;
    const double high = std::min(model_.high_mhz, std::max(model_.curve.throttle_clock(), model_.low_mhz)) / clock;
    Terms terms = terms_;
    terms.ridge = true;
    FitEnd from = best_;
    if (!terms_.ridge) from.at[model::kSlope] = 0.3;
    const auto cost = [&](double x) { return fit_.cost_with_optimum(terms, x, low, high, from); };
    const auto [lower, upper] = profile_interval(cost, std::min(value / clock, high), low, high, threshold_);
    return {value, std::min(lower * clock, value), std::max(upper * clock, value)};
  }

  void covariance() {
    const double clock = fit_.clock_scale(), power = fit_.power_scale();
    const double scale[] = {power, power / clock, 1.0 / clock, clock, power};
    model_.covariance.resize(25);
    for (std::size_t i = 0; i < 5; ++i) {
      for (std::size_t j = 0; j < 5; ++j) {
        model_.covariance[i * 5 + j] = variance_ * best_.covariance[i * model::kPlaces + j] * scale[i] * scale[j];
      }
    }
  }

  const PowerFit& fit_;
  const PowerModelOptions& options_;
  PowerModel& model_;
  Terms terms_;
  FitEnd best_;
  double variance_ = 0, threshold_ = 0;
};

/// Chooses the terms that the data require, and fits with them.
class TermChoice {
 public:
  TermChoice(const PowerFit& fit, std::size_t clocks) : fit_(fit), clocks_(clocks) {
    terms_.voltage = fit.has_voltage() && clocks >= 4;
    terms_.ridge = clocks >= 5 || terms_.voltage;
    end_ = fit.fit(terms_);
  }

  /// Adds a power cap if it explains what a rising curve cannot.
  void try_cap() {
    if (clocks_ < 6) return;
    Terms capped = terms_;
    capped.cap = true;
    const FitEnd capped_end = fit_.fit(capped);
    if (needed(fit_, terms_, end_, capped, capped_end, 0.01)) take(capped, capped_end);
  }

  /// Keeps the ridge only if a straight line is not sufficient. Returns why there is none; empty if there is one.
  std::string try_without_ridge(double level) {
    if (!terms_.ridge) return too_few(clocks_);
    Terms straight = terms_;
    straight.ridge = false;
    const FitEnd straight_end = fit_.fit(straight);
    if (needed(fit_, straight, straight_end, terms_, end_, level)) return {};
    take(straight, straight_end);
    return "power rises in a straight line with the clock: no ridge in this range";
  }

  /// Adds terms beyond those of the paper if cross-validation favours them.
  void try_extras(std::size_t samples) {
    for (bool Terms::*extra : {&Terms::memory, &Terms::temperature}) {
      const bool varies = extra == &Terms::memory ? fit_.memory_varies() : fit_.temperature_varies();
      if (!varies || samples < 10) continue;
      Terms more = terms_;
      more.*extra = true;
      const FitEnd more_end = fit_.fit(more, {}, std::span(&end_.at, 1));
      if (more_end.ok && fit_.cross_validation(more, more_end) < kClearlyBetter * fit_.cross_validation(terms_, end_))
        take(more, more_end);
    }
  }

  const Terms& terms() const { return terms_; }
  const FitEnd& end() const { return end_; }
  static std::string too_few(std::size_t clocks) {
    return fmt::format("power is known at {} clocks only; at least 5 are needed to see a ridge", clocks);
  }

 private:
  void take(const Terms& terms, const FitEnd& end) {
    terms_ = terms;
    end_ = end;
  }

  const PowerFit& fit_;
  std::size_t clocks_;
  Terms terms_;
  FitEnd end_;
};

double relative_deviation(const PowerModel& model, const std::vector<PowerSample>& samples, double degrees) {
  double squares = 0;
  for (const PowerSample& sample : samples) {
    const double difference = std::log(sample.power_w / model.power(sample));
    squares += difference * difference;
  }
  return std::sqrt(squares / degrees);
}

/// Sets whether the ridge lies inside the sampled clocks, and notes on it and on a cap.
void judge(PowerModel& model, bool ridge, double lowest, double highest) {
  if (ridge) {
    const double length = highest - lowest;
    if (model.curve.ridge_mhz - lowest < 2e-3 * length) {
      model.why_not = "the voltage rises over the whole range: the ridge lies at or below the lowest clock";
    } else {
      model.found = true;
      if (model.ridge_mhz.low - lowest < 1e-3 * length) {
        model.notes.push_back("the data do not exclude a ridge below the lowest clock");
      }
    }
  }
  if (model.max_power_w) {
    model.notes.push_back(fmt::format("power is capped at {:.1f} W above {:.0f} MHz", model.max_power_w->value,
                                      model.curve.throttle_clock()));
  }
}

}  // namespace

PowerModel fit_power_model(std::span<const PowerSample> samples, const PowerModelOptions& options) {
  PowerModel model;
  const std::vector<PowerSample> kept = clean(samples, model.notes);
  model.samples = kept.size();
  std::set<double> clocks;
  for (const PowerSample& s : kept) clocks.insert(s.clock_mhz);
  if (clocks.size() < 3) {
    model.why_not = TermChoice::too_few(clocks.size());
    return model;
  }
  model.usable = true;
  model.low_mhz = options.low_mhz.value_or(*clocks.begin());
  model.high_mhz = std::max(model.low_mhz, options.high_mhz.value_or(*clocks.rbegin()));
  const auto mean_of = [&](auto member) {
    double sum = 0;
    for (const PowerSample& s : kept) sum += (s.*member).value_or(std::numeric_limits<double>::quiet_NaN());
    return std::isfinite(sum) ? sum / static_cast<double>(kept.size()) : 0;
  };
  model.memory_mhz = mean_of(&PowerSample::memory_clock_mhz);
  model.temperature_c = mean_of(&PowerSample::temperature_c);
  const PowerFit fit(kept);
  TermChoice choice(fit, clocks.size());
  model.voltage_measured = choice.terms().voltage;
  choice.try_cap();
  model.why_not = choice.try_without_ridge(options.ridge_level);
  choice.try_extras(kept.size());
  Builder(fit, options, model).build(choice.terms(), choice.end());
  model.relative_deviation = relative_deviation(model, kept, fit.degrees(choice.terms()));
  judge(model, choice.terms().ridge, *clocks.begin(), *clocks.rbegin());
  return model;
}

double PowerModel::power(double clock_mhz, std::optional<double> memory_clock_mhz,
                         std::optional<double> temperature) const {
  double further = 0;
  if (memory_w_per_mhz && memory_clock_mhz) further += memory_w_per_mhz->value * (*memory_clock_mhz - memory_mhz);
  if (temperature_w_per_c && temperature) further += temperature_w_per_c->value * (*temperature - temperature_c);
  PowerCurve uncapped = curve;
  uncapped.max_power_w = std::numeric_limits<double>::infinity();
  return std::min(curve.max_power_w, uncapped.power(clock_mhz) + further);
}

double PowerModel::relative_error(double clock_mhz) const {
  if (covariance.size() != 25) return std::numeric_limits<double>::infinity();
  const double power = curve.power(clock_mhz), v = curve.voltage(clock_mhz);
  const double distance = std::max(0.0, clock_mhz - curve.ridge_mhz);
  double gradient[5] = {1.0, clock_mhz * v * v, curve.dynamic_w_per_mhz * clock_mhz * 2 * v * distance,
                        distance > 0 ? -curve.dynamic_w_per_mhz * clock_mhz * 2 * v * curve.voltage_slope_per_mhz : 0.0,
                        0.0};
  if (power >= curve.max_power_w) {
    std::fill(gradient, gradient + 4, 0.0);
    gradient[4] = 1.0;
  }
  double sum = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < 5; ++j) sum += gradient[i] * covariance[i * 5 + j] * gradient[j];
  }
  return std::sqrt(std::max(0.0, sum)) / power;
}

// Compares the ridge point from voltages alone with that from powers alone.
namespace {

/// Number of steps in the search for the voltage's ridge.
constexpr int kGrid = 400;
/// Smallest relative error of a voltage reading: readings come in steps of some millivolts.
constexpr double kVoltageError = 0.003;

struct CurveKnee {
  double cost = 0, slope = 0;
};

/// Fits v0 (1 + b max(0, f - ridge)) for a given ridge, by relative residuals.
CurveKnee bend_at(double ridge, const std::vector<double>& f, const std::vector<double>& v) {
  std::vector<double> x;
  for (const double clock : f) x.push_back(std::max(0.0, clock - ridge));
  const LineFit line = fit_line(x, v);
  const bool flat = line.count == 0;
  const double level = flat ? mean(v) : line.intercept;
  CurveKnee bend{0, flat ? 0 : line.slope};
  for (std::size_t i = 0; i < f.size(); ++i) {
    const double residual = (level + bend.slope * x[i]) / v[i] - 1;
    bend.cost += residual * residual;
  }
  return bend;
}

}  // namespace

std::optional<Estimate> ridge_from_voltage(std::span<const PowerSample> samples) {
  std::vector<double> f, v;
  for (const PowerSample& s : samples) {
    if (!s.voltage_v || !(*s.voltage_v > 0)) continue;
    f.push_back(s.clock_mhz);
    v.push_back(*s.voltage_v);
  }
  if (f.size() < 4) return std::nullopt;
  const auto [low, high] = std::minmax_element(f.begin(), f.end());
  std::vector<std::pair<double, CurveKnee>> tried;
  for (int i = 0; i < kGrid; ++i) {
    const double ridge = *low + (*high - *low) * i / kGrid;
    tried.emplace_back(ridge, bend_at(ridge, f, v));
  }
  const auto best =
      std::ranges::min_element(tried, [](const auto& a, const auto& b) { return a.second.cost < b.second.cost; });
  const double degrees = std::max(1.0, static_cast<double>(f.size()) - 3);
  const double variance = std::max(best->second.cost / degrees, kVoltageError * kVoltageError);
  const double t = student_t_quantile(0.975, degrees);
  // A constant voltage has no ridge.
  const double flat = bend_at(*high, f, v).cost;
  if (best->second.slope <= 0 || flat - best->second.cost < variance * t * t) return std::nullopt;
  Estimate ridge{best->first, best->first, best->first};
  for (const auto& [at, bend] : tried) {
    if (bend.cost > best->second.cost + variance * t * t) continue;
    ridge.low = std::min(ridge.low, at);
    ridge.high = std::max(ridge.high, at);
  }
  return ridge;
}

RidgeComparison compare_ridges(std::span<const PowerSample> samples) {
  RidgeComparison out;
  out.from_voltage = ridge_from_voltage(samples);
  std::vector<PowerSample> powers(samples.begin(), samples.end());
  for (PowerSample& s : powers) s.voltage_v.reset();
  if (const PowerModel model = fit_power_model(powers); model.found) out.from_power = model.ridge_mhz;
  return out;
}

}  // namespace ergotune
