#include "temperature/temperature_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/statistics.hpp"

namespace ergotune {
namespace {

constexpr std::size_t kFewest = 8;
/// A slope from a smaller span would show noise rather than the GPU.
constexpr double kLeastSpan = 3;  // °C
/// Chips report whole degrees.
constexpr double kResolution = 1;

bool has_power_cap(const Measurement& run) {
  return std::any_of(run.warnings.begin(), run.warnings.end(),
                     [](const std::string& warning) { return warning.find("power cap") != std::string::npos; });
}

std::vector<double> values_of(const std::vector<Measurement>& runs, const std::string& name) {
  std::vector<double> values;
  for (const Measurement& run : runs)
    if (const auto value = run.value(name)) values.push_back(*value);
  return values;
}

std::string devices_error(const TemperatureStudy& study) {
  if (!study.slopes.contains("power")) return "too few runs with power and temperature";
  if (study.capped)
    return "the device was at its power limit, where power cannot show what the temperature does; take a kernel that "
           "needs "
           "less, or a lower clock";
  if (study.hottest - study.coolest < kLeastSpan)
    return fmt::format("the temperature moved by {:.1f} degrees only; --rest lets the device cool in between",
                       study.hottest - study.coolest);
  return {};
}

}  // namespace

std::optional<TemperatureSlope> slope_over_temperature(std::span<const double> celsius, std::span<const double> values,
                                                       double resolution) {
  const std::size_t n = std::min(celsius.size(), values.size());
  if (n < kFewest) return std::nullopt;
  const LineFit line = fit_line(celsius.first(n), values.first(n));
  TemperatureSlope out;
  out.count = n;
  out.mean = mean(values.first(n));
  out.mean_temperature = mean(celsius.first(n));
  double spread = 0, squares = 0;
  std::vector<double> scores;  // x - mean, times the residual
  for (std::size_t i = 0; i < n; ++i) {
    const double x = celsius[i] - out.mean_temperature, residual = values[i] - line.intercept - line.slope * celsius[i];
    spread += x * x;
    squares += residual * residual;
    scores.push_back(x * residual);
  }
  if (!(spread > 1e-9)) return std::nullopt;
  double sum = 0;
  const auto lags = static_cast<std::size_t>(std::cbrt(static_cast<double>(n)));
  for (std::size_t lag = 0; lag <= lags; ++lag) {
    double product = 0;
    for (std::size_t i = lag; i < n; ++i) product += scores[i] * scores[i - lag];
    sum += (lag == 0 ? 1.0 : 2 * (1 - static_cast<double>(lag) / static_cast<double>(lags + 1))) * product;
  }
  const double degrees = static_cast<double>(n - 2);
  out.slope = line.slope;
  // A negative estimate of the correlation must not make the interval shorter than for independent runs.
  const double independent = squares / degrees / spread;
  const double scatter = std::max(sum * static_cast<double>(n) / degrees / (spread * spread), independent);
  const auto [coolest, hottest] =
      std::minmax_element(celsius.begin(), celsius.begin() + static_cast<std::ptrdiff_t>(n));
  const double coarse = out.slope * std::sqrt(2.0 / 12) * resolution / (*hottest - *coolest);
  out.standard_error = std::sqrt(scatter + coarse * coarse);
  const double half = half_width_95(out.standard_error, degrees);
  out.low = out.slope - half;
  out.high = out.slope + half;
  out.deviation = std::sqrt(squares / degrees);
  return out;
}

TemperatureStudy study_temperature(const std::vector<Measurement>& runs) {
  TemperatureStudy study;
  for (const Measurement& run : runs) {
    if (usable(run.status) && run.value("temperature") && run.value("energy")) {
      study.runs.push_back(run);
      study.capped = study.capped || has_power_cap(run);
    } else {
      ++study.failed;
    }
  }
  const std::vector<double> celsius = values_of(study.runs, "temperature");
  if (!celsius.empty()) {
    const auto [coolest, hottest] = std::minmax_element(celsius.begin(), celsius.end());
    study.coolest = *coolest;
    study.hottest = *hottest;
  }
  for (const char* name : {"energy", "power", "time", "core_clock"}) {
    const std::vector<double> values = values_of(study.runs, name);
    if (values.size() != celsius.size()) continue;
    if (const auto slope = slope_over_temperature(celsius, values, kResolution)) study.slopes[name] = *slope;
  }
  study.why_not = devices_error(study);
  return study;
}

double energy_at(const TemperatureStudy& study, const Measurement& run, double celsius) {
  const auto slope = study.slopes.find("energy");
  const double per_degree = slope == study.slopes.end() ? 0 : slope->second.slope;
  return *run.value("energy") - per_degree * (*run.value("temperature") - celsius);
}

EnergyScatter scatter_of(const TemperatureStudy& study, double celsius) {
  std::vector<double> measured, corrected;
  for (const Measurement& run : study.runs) {
    measured.push_back(*run.value("energy"));
    corrected.push_back(energy_at(study, run, celsius));
  }
  if (measured.size() < 2) return {};
  return {std::sqrt(variance(measured)) / mean(measured), std::sqrt(variance(corrected)) / mean(corrected)};
}

}  // namespace ergotune
