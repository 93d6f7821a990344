// The fit used by fit_power_model: a family of curves with optional terms, and profile likelihoods.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/least_squares.hpp"
#include "model/power_model.hpp"

namespace ergotune::model {

/// The terms of a fit besides idle and dynamic power.
struct Terms {
  bool ridge = true;
  bool cap = false;
  bool voltage = false;  ///< fit measured voltages together with the powers
  bool memory = false;
  bool temperature = false;
};

/// Positions of the parameters, the same for all sets of terms; parameters of unused terms are held fixed.
enum Place : std::size_t { kIdle, kDynamic, kSlope, kRidge, kCap, kVolts, kMemory, kTemperature, kPlaces };
using Parameters = std::array<double, kPlaces>;
/// Values at which parameters are held fixed.
using FixedPlaces = std::array<std::optional<double>, kPlaces>;

/// Result of a fit. Clocks and powers are relative to the largest in the data.
struct FitEnd {
  bool ok = false;
  double cost = 0;
  Parameters at{};
  std::array<bool, kPlaces> at_bound{};
  /// Unscaled covariance (inverse of J^T J) over all places.
  std::vector<double> covariance;
};

class PowerFit {
 public:
  explicit PowerFit(std::span<const PowerSample> samples);

  double clock_scale() const { return clock_scale_; }
  double power_scale() const { return power_scale_; }
  double lowest() const { return lowest_; }
  std::size_t count() const { return clock_.size(); }
  bool errors_known() const { return errors_known_; }
  bool has_voltage() const { return !volts_.empty(); }
  bool memory_varies() const { return memory_varies_; }
  bool temperature_varies() const { return temperature_varies_; }
  /// Residuals minus free parameters, at least 1.
  double degrees(const Terms& terms) const;

  /// Fits from several starting points. `fixed`: parameters held at values. `from`: additional starting points.
  /// `quick`: starts from `from` only.
  FitEnd fit(const Terms& terms, const FixedPlaces& fixed = {}, std::span<const Parameters> from = {},
             bool quick = false, bool with_covariance = false) const;
  /// The least cost among curves whose energy-optimal clock in [low, high] is `optimum` (all relative to
  /// clock_scale()).
  double cost_with_optimum(const Terms& terms, double optimum, double low, double high, const FitEnd& best) const;
  /// Sum of squared errors, in units of residuals, when each sample is predicted from the others.
  double cross_validation(const Terms& terms, const FitEnd& best) const;

 private:
  double model_power(const Parameters& p, std::size_t i) const;
  void residuals(const Terms& terms, const Parameters& p, std::span<double> out,
                 std::optional<std::size_t> left_out) const;
  std::size_t residual_count(const Terms& terms) const;
  FitParameter bounds(Place place) const;
  FitEnd fit_without(const Terms& terms, std::optional<std::size_t> left_out, const FixedPlaces& fixed,
                     std::span<const Parameters> from, bool quick, bool with_covariance) const;

  /// Starting points: a line through the lower half of the clocks, with ridges spread over the range.
  std::vector<Parameters> spread_starts(const Terms& terms, const FixedPlaces& fixed, const Parameters& base,
                                        std::optional<std::size_t> left_out) const;

  std::vector<double> clock_, power_, error_, volts_, memory_, temperature_;
  double clock_scale_ = 1, power_scale_ = 1, volts_scale_ = 1, lowest_ = 0;
  bool errors_known_ = false, memory_varies_ = false, temperature_varies_ = false;
};

}  // namespace ergotune::model
