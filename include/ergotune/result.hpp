// What was found out about one configuration.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ergotune {

/// How it went. A configuration's failure is data. `not_converged` keeps its values: they missed the precision asked.
enum class Status { ok, compile_error, launch_error, runtime_error, timeout, wrong_result, not_converged, unsupported };
std::string to_string(Status status);
std::optional<Status> status_from(std::string_view name);
/// True when the quantities may be used by a search: ok and not_converged.
bool usable(Status status);

/// Where a number comes from. Every output marks what is not measured.
enum class Provenance { measured, replayed, simulated, modelled };
std::string to_string(Provenance provenance);

/// A quantity in SI units with its standard error. `n` values went into it, not all of them independent: what the
/// standard error was estimated from is given by `degrees`.
struct Quantity {
  double value = 0;
  double standard_error = 0;
  std::int64_t n = 0;
  /// How it was obtained: "device events", "counter regression" ...
  std::string method;
  /// Sensor id, where one was read.
  std::string sensor;
  Provenance provenance = Provenance::measured;
  /// Degrees of freedom of the standard error; 0 where it is not estimated from few samples.
  double degrees = 0;
  /// Of the 95 % confidence interval, by Student's t.
  double half_width() const;
};

/// Names of quantities: problem/tables/quantity.hpp, and whatever observers bring.
struct Measurement {
  Status status = Status::ok;
  /// The message of the failure: the compiler's output, the driver's message.
  std::string message;
  std::map<std::string, Quantity> quantities;
  std::map<std::string, double> metrics;
  /// Standard errors of metrics, propagated to first order (measure/metrics.hpp); absent means 0.
  std::map<std::string, double> metric_errors;
  /// Their degrees of freedom; absent means 0 (Quantity::degrees).
  std::map<std::string, double> metric_degrees;
  /// Things to know that do not make it a failure: "power cap", "asked 1410 MHz, ran 1275 MHz, power cap".
  std::vector<std::string> warnings;
  /// Single launch times in s, kept for exports; may be empty.
  std::vector<double> times;
  /// What it cost, in s.
  double compile_seconds = 0, verify_seconds = 0, measure_seconds = 0, tuner_seconds = 0;
  /// When it was finished: s since the epoch.
  double finished_at = 0;
  bool ok() const { return status == Status::ok; }
  /// The value of a quantity or metric; nullopt when it has none or it is not finite.
  std::optional<double> value(const std::string& name) const;
  /// Its standard error (metrics: from metric_errors).
  double standard_error(const std::string& name) const;
  /// The degrees of freedom of that (Quantity::degrees).
  double degrees(const std::string& name) const;
  /// Half-width of its 95 % confidence interval, as everything prints, stores and draws it.
  double half_width(const std::string& name) const;
};

}  // namespace ergotune
