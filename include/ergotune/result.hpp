// The measurement of one configuration.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ergotune {

/// Status of a measurement. A configuration's failure is data. `not_converged`: the values are valid but miss the
/// requested precision.
enum class Status { ok, compile_error, launch_error, runtime_error, timeout, wrong_result, not_converged, unsupported };
std::string to_string(Status status);
std::optional<Status> status_from(std::string_view name);
/// True for ok and not_converged: a search may use the quantities.
bool usable(Status status);

/// The origin of a number. Every output marks values that were not measured.
enum class Provenance { measured, replayed, simulated, modelled };
std::string to_string(Provenance provenance);

/// A value in SI units with its standard error. `n` is the number of samples, which need not be independent; `degrees`
/// gives the degrees of freedom that the standard error is based on.
struct Quantity {
  double value = 0;
  double standard_error = 0;
  std::int64_t n = 0;
  /// Method: "device events", "counter regression" ...
  std::string method;
  /// Sensor id; empty if no sensor was read.
  std::string sensor;
  Provenance provenance = Provenance::measured;
  /// Degrees of freedom of the standard error; 0 if it was not estimated from a small sample.
  double degrees = 0;
  /// Half-width of the 95 % confidence interval from Student's t distribution.
  double half_width() const;
};

/// The result of evaluating one configuration. problem/tables/quantity.hpp lists the names of quantities; observers may
/// add others.
struct Measurement {
  Status status = Status::ok;
  /// Message of the failure, from the compiler or the driver for example; empty if there is none.
  std::string message;
  std::map<std::string, Quantity> quantities;
  std::map<std::string, double> metrics;
  /// Standard errors of metrics, propagated to first order (measure/metrics.hpp); absent means 0, NaN unknown.
  std::map<std::string, double> metric_errors;
  /// Degrees of freedom of these standard errors; absent means 0 (Quantity::degrees).
  std::map<std::string, double> metric_degrees;
  /// Remarks that do not make the measurement a failure, such as "asked 1410 MHz, ran 1275 MHz, power cap".
  std::vector<std::string> warnings;
  /// Times of single launches in s, kept for exports; may be empty.
  std::vector<double> times;
  /// Duration of each stage of the evaluation in s.
  double compile_seconds = 0, verify_seconds = 0, measure_seconds = 0, tuner_seconds = 0;
  /// Time at which the evaluation finished, in s since the Unix epoch.
  double finished_at = 0;
  bool ok() const { return status == Status::ok; }
  /// Returns the value of a quantity or metric; nullopt if it is absent or not finite.
  std::optional<double> value(const std::string& name) const;
  /// Returns the standard error of a quantity, or of a metric (from metric_errors).
  double standard_error(const std::string& name) const;
  /// Returns the degrees of freedom of that standard error (Quantity::degrees).
  double degrees(const std::string& name) const;
  /// Returns the half-width of the 95 % confidence interval, which all outputs print, store and plot.
  double half_width(const std::string& name) const;
};

}  // namespace ergotune
