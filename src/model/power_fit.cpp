#include "model/power_fit.hpp"

#include <algorithm>
#include <cmath>

#include "base/statistics.hpp"

namespace ergotune::model {
namespace {

// Measured voltages come in steps of some millivolts.
constexpr double kVoltageError = 0.005;
// Largest rise of the voltage per relative clock: it would grow ninefold from 0 to the highest clock.
constexpr double kLargestSlope = 8;

bool varies(std::span<const double> values) {
  if (values.empty()) return false;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *high - *low > 1e-3 * std::abs(*high);
}

/// Whether the temperature varies by itself. What power alone has heated explains any curve of power, and no leakage.
bool varies_beside(std::span<const double> power, std::span<const double> temperature) {
  constexpr double kLeastDegrees = 2;
  return temperature.size() >= 3 && fit_line(power, temperature).residual_deviation > kLeastDegrees;
}

}  // namespace

PowerFit::PowerFit(std::span<const PowerSample> samples) {
  const auto all = [&](auto member) {
    return std::ranges::all_of(samples, [&](const PowerSample& s) { return (s.*member).has_value(); });
  };
  const bool volts = !samples.empty() && all(&PowerSample::voltage_v);
  const bool memory = !samples.empty() && all(&PowerSample::memory_clock_mhz);
  const bool temperature = !samples.empty() && all(&PowerSample::temperature_c);
  errors_known_ =
      !samples.empty() && std::ranges::all_of(samples, [](const PowerSample& s) { return s.power_error_w > 0; });
  clock_scale_ = power_scale_ = 1e-300;
  for (const PowerSample& s : samples) {
    clock_scale_ = std::max(clock_scale_, s.clock_mhz);
    power_scale_ = std::max(power_scale_, s.power_w);
  }
  lowest_ = 1;
  for (const PowerSample& s : samples) {
    clock_.push_back(s.clock_mhz / clock_scale_);
    power_.push_back(s.power_w / power_scale_);
    error_.push_back(errors_known_ ? s.power_error_w / s.power_w : 1.0);
    lowest_ = std::min(lowest_, clock_.back());
    if (volts) volts_.push_back(*s.voltage_v);
    if (memory) memory_.push_back(*s.memory_clock_mhz / clock_scale_);
    if (temperature) temperature_.push_back(*s.temperature_c);
  }
  if (volts) {
    volts_scale_ = *std::ranges::min_element(volts_);
    for (double& v : volts_) v /= volts_scale_;
  }
  memory_varies_ = varies(memory_);
  temperature_varies_ = varies_beside(power_, temperature_);
  const double middle_memory = memory ? mean(memory_) : 0, middle_temperature = temperature ? mean(temperature_) : 0;
  for (double& m : memory_) m -= middle_memory;
  for (double& t : temperature_) t = (t - middle_temperature) / 100.0;
}

double PowerFit::model_power(const Parameters& p, std::size_t i) const {
  const double v = 1.0 + p[kSlope] * std::max(0.0, clock_[i] - p[kRidge]);
  double power = p[kIdle] + p[kDynamic] * clock_[i] * v * v;
  if (!memory_.empty()) power += p[kMemory] * memory_[i];
  if (!temperature_.empty()) power += p[kTemperature] * temperature_[i];
  return std::max(1e-9, std::min(p[kCap], power));
}

std::size_t PowerFit::residual_count(const Terms& terms) const { return clock_.size() * (terms.voltage ? 2 : 1); }

double PowerFit::degrees(const Terms& terms) const {
  const int free = 2 + 2 * terms.ridge + terms.cap + terms.voltage + terms.memory + terms.temperature;
  return std::max(1.0, static_cast<double>(residual_count(terms)) - free);
}

void PowerFit::residuals(const Terms& terms, const Parameters& p, std::span<double> out,
                         std::optional<std::size_t> left_out) const {
  const std::size_t n = clock_.size();
  for (std::size_t i = 0; i < n; ++i) out[i] = std::log(power_[i] / model_power(p, i)) / error_[i];
  if (terms.voltage) {
    // Without known errors the residuals of powers are relative errors: scale those of voltages likewise.
    const double error = errors_known_ ? kVoltageError : 1.0;
    for (std::size_t i = 0; i < n; ++i) {
      const double v = p[kVolts] * (1.0 + p[kSlope] * std::max(0.0, clock_[i] - p[kRidge]));
      out[n + i] = std::log(volts_[i] / v) / error;
    }
  }
  if (left_out) {
    out[*left_out] = 0;
    if (terms.voltage) out[n + *left_out] = 0;
  }
}

FitParameter PowerFit::bounds(Place place) const {
  switch (place) {
    case kIdle:
      return {"idle", 0.0, 1.5};
    case kDynamic:
      return {"dynamic", 0.0, 4.0};
    case kSlope:
      return {"slope", 0.0, kLargestSlope};
    case kRidge:
      return {"ridge", lowest_, 1.0};
    case kCap:
      return {"cap", 0.3, 1.3};
    case kVolts:
      return {"volts", 0.5, 2.0};
    default:
      return {"term", -10.0, 10.0};
  }
}

FitEnd PowerFit::fit(const Terms& terms, const FixedPlaces& fixed, std::span<const Parameters> from, bool quick,
                     bool with_covariance) const {
  return fit_without(terms, std::nullopt, fixed, from, quick, with_covariance);
}

namespace {

/// The parameters that a fit varies, and the values of the others.
struct FreeParameters {
  std::vector<Place> places;
  Parameters base{};

  FreeParameters(const Terms& terms, const FixedPlaces& fixed) {
    // The parameter of an unused term has the value that disables the term.
    base[kRidge] = 1.0;
    base[kCap] = 1e9;
    base[kVolts] = 1.0;
    const bool present[kPlaces] = {true,      true,          terms.ridge,  terms.ridge,
                                   terms.cap, terms.voltage, terms.memory, terms.temperature};
    for (std::size_t place = 0; place < kPlaces; ++place) {
      if (fixed[place]) {
        base[place] = *fixed[place];
      } else if (present[place]) {
        places.push_back(static_cast<Place>(place));
      }
    }
  }

  std::vector<double> values(const Parameters& p) const {
    std::vector<double> out;
    for (const Place place : places) out.push_back(p[place]);
    return out;
  }

  FitEnd end(const LeastSquaresFit& found, bool with_covariance) const {
    FitEnd end;
    end.ok = found.ok;
    end.cost = found.ok ? found.cost : std::numeric_limits<double>::infinity();
    end.at = base;
    if (!found.ok) return end;
    for (std::size_t k = 0; k < places.size(); ++k) end.at[places[k]] = found.parameters[k];
    if (!with_covariance) return end;
    end.covariance.assign(kPlaces * kPlaces, 0.0);
    for (std::size_t i = 0; i < places.size(); ++i) {
      end.at_bound[places[i]] = found.at_bound[i];
      for (std::size_t j = 0; j < places.size(); ++j)
        end.covariance[places[i] * kPlaces + places[j]] = found.covariance_at(i, j);
    }
    return end;
  }
};

}  // namespace

FitEnd PowerFit::fit_without(const Terms& terms, std::optional<std::size_t> left_out, const FixedPlaces& fixed,
                             std::span<const Parameters> from, bool quick, bool with_covariance) const {
  const FreeParameters free(terms, fixed);
  LeastSquaresProblem problem;
  problem.residual_count = residual_count(terms);
  Parameters work = free.base;
  problem.residuals = [&](std::span<const double> p, std::span<double> out) {
    for (std::size_t k = 0; k < free.places.size(); ++k) work[free.places[k]] = p[k];
    residuals(terms, work, out, left_out);
  };
  for (const Place place : free.places) problem.parameters.push_back(bounds(place));
  for (const Parameters& p : from) problem.starts.push_back(free.values(p));
  if (!quick || from.empty()) {
    for (const Parameters& p : spread_starts(terms, fixed, free.base, left_out))
      problem.starts.push_back(free.values(p));
  }
  return free.end(least_squares(problem, with_covariance), with_covariance);
}

std::vector<Parameters> PowerFit::spread_starts(const Terms& terms, const FixedPlaces& fixed, const Parameters& base,
                                                std::optional<std::size_t> left_out) const {
  const double middle = median(clock_);
  std::vector<double> x, y;
  for (std::size_t i = 0; i < clock_.size(); ++i) {
    if (clock_[i] > middle || i == left_out) continue;
    x.push_back(clock_[i]);
    y.push_back(power_[i]);
  }
  const LineFit line = fit_line(x, y);
  Parameters p = base;
  p[kIdle] = std::clamp(line.intercept, 0.02, 1.0);
  p[kDynamic] = std::clamp(line.slope, 0.05, 3.0);
  p[kSlope] = 0.8;
  std::vector<Parameters> starts;
  const int ridges = terms.ridge && !fixed[kRidge] ? 7 : 1;
  for (int k = 0; k < ridges; ++k) {
    if (!fixed[kRidge] && terms.ridge) p[kRidge] = lowest_ + (1.0 - lowest_) * (k + 0.5) / ridges;
    if (terms.cap && !fixed[kCap]) {
      for (const double cap : {0.98, 0.85}) {
        p[kCap] = cap;
        starts.push_back(p);
      }
    } else {
      starts.push_back(p);
    }
  }
  return starts;
}

double PowerFit::cost_with_optimum(const Terms& terms, double optimum, double low, double high,
                                   const FitEnd& best) const {
  // The optimum replaces the idle power as a parameter: above the ridge P_idle = 2 a b f^2 v(f) at the optimum f (d/df
  // P/f = 0); with the optimum at the ridge P_idle is at most that, and at the top of the range at least that.
  const auto solve = [&](bool ridge_at_optimum, double factor_low, double factor_high) {
    Terms inner = terms;
    LeastSquaresProblem problem;
    problem.residual_count = residual_count(inner);
    Parameters work = best.at;
    const bool factor_free = factor_high > factor_low;
    const bool optimum_inside_ridge = ridge_at_optimum;
    problem.parameters = {bounds(kDynamic), bounds(kSlope)};
    if (!optimum_inside_ridge) problem.parameters.push_back({"ridge", lowest_, std::max(lowest_ + 1e-9, optimum)});
    if (factor_free) problem.parameters.push_back({"factor", factor_low, factor_high});
    if (inner.cap) problem.parameters.push_back(bounds(kCap));
    if (inner.voltage) problem.parameters.push_back(bounds(kVolts));
    if (inner.memory) problem.parameters.push_back(bounds(kMemory));
    if (inner.temperature) problem.parameters.push_back(bounds(kTemperature));
    problem.residuals = [&](std::span<const double> p, std::span<double> out) {
      std::size_t k = 0;
      work[kDynamic] = p[k++];
      work[kSlope] = p[k++];
      work[kRidge] = optimum_inside_ridge ? optimum : p[k++];
      const double factor = factor_free ? p[k++] : factor_low;
      if (inner.cap) work[kCap] = p[k++];
      if (inner.voltage) work[kVolts] = p[k++];
      if (inner.memory) work[kMemory] = p[k++];
      if (inner.temperature) work[kTemperature] = p[k++];
      const double v = 1.0 + work[kSlope] * std::max(0.0, optimum - work[kRidge]);
      work[kIdle] = factor * 2.0 * work[kDynamic] * work[kSlope] * optimum * optimum * v;
      residuals(inner, work, out, std::nullopt);
    };
    for (const double slope : {best.at[kSlope], 0.5}) {
      std::vector<double> start = {best.at[kDynamic], slope};
      if (!optimum_inside_ridge) start.push_back(std::min(best.at[kRidge], optimum));
      if (factor_free) start.push_back(factor_high > 1.5 ? 1.5 : 0.5);
      if (inner.cap) start.push_back(best.at[kCap]);
      if (inner.voltage) start.push_back(best.at[kVolts]);
      if (inner.memory) start.push_back(best.at[kMemory]);
      if (inner.temperature) start.push_back(best.at[kTemperature]);
      problem.starts.push_back(std::move(start));
    }
    const LeastSquaresFit found = least_squares(problem, false);
    return found.ok ? found.cost : std::numeric_limits<double>::infinity();
  };
  double cost = std::min(solve(true, 0.0, 1.0), solve(false, 1.0, 1.0));
  // At the top of the range the energy may still be falling; at its bottom it may already be rising.
  if (optimum >= high - 1e-9) {
    cost = std::min(cost, solve(false, 1.0, 30.0));
    Terms straight = terms;
    straight.ridge = false;
    cost = std::min(cost, fit(straight, {}, {}, false, false).cost);
  }
  if (optimum <= low + 1e-9) cost = std::min(cost, solve(false, 0.0, 1.0));
  return cost;
}

double PowerFit::cross_validation(const Terms& terms, const FitEnd& best) const {
  double sum = 0;
  std::vector<double> out(residual_count(terms));
  for (std::size_t i = 0; i < clock_.size(); ++i) {
    const FitEnd end = fit_without(terms, i, {}, std::span(&best.at, 1), true, false);
    if (!end.ok) return std::numeric_limits<double>::infinity();
    residuals(terms, end.at, out, std::nullopt);
    sum += out[i] * out[i];
  }
  return sum;
}

}  // namespace ergotune::model
