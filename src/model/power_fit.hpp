// The fit behind fit_power_model: one family of curves with terms switched on and off, and profile
// likelihoods.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/least_squares.hpp"
#include "model/power_model.hpp"

namespace ergotune::model {

/// Which terms a fit has beside idle and dynamic power.
struct Terms {
  bool ridge = true;
  bool cap = false;
  bool voltage = false;  ///< measured voltages are fitted along with the powers
  bool memory = false;
  bool temperature = false;
};

/// Positions of the parameters, the same for every set of terms; those without their term are held fixed.
enum Place : std::size_t { kIdle, kDynamic, kSlope, kRidge, kCap, kVolts, kMemory, kTemperature, kPlaces };
using Parameters = std::array<double, kPlaces>;
/// Values at which parameters are held.
using FixedPlaces = std::array<std::optional<double>, kPlaces>;

/// What a fit ended with. Clocks and powers are relative to the data's largest.
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

  /// Fits with several starts; `fixed` holds places at values, `from` adds starts. `quick` starts only from
  /// `from`.
  FitEnd fit(const Terms& terms, const FixedPlaces& fixed = {}, std::span<const Parameters> from = {},
             bool quick = false, bool with_covariance = false) const;
  /// The least cost among curves whose energy-optimal clock over [low, high] is `optimum` (all relative to
  /// clock_scale()).
  double cost_with_optimum(const Terms& terms, double optimum, double low, double high, const FitEnd& best) const;
  /// Squared prediction error, in residual units, of every sample predicted from the others.
  double cross_validation(const Terms& terms, const FitEnd& best) const;

 private:
  double model_power(const Parameters& p, std::size_t i) const;
  void residuals(const Terms& terms, const Parameters& p, std::span<double> out,
                 std::optional<std::size_t> left_out) const;
  std::size_t residual_count(const Terms& terms) const;
  FitParameter bounds(Place place) const;
  FitEnd fit_without(const Terms& terms, std::optional<std::size_t> left_out, const FixedPlaces& fixed,
                     std::span<const Parameters> from, bool quick, bool with_covariance) const;

  /// A line through the lower half of the clocks, and ridges spread over the range.
  std::vector<Parameters> spread_starts(const Terms& terms, const FixedPlaces& fixed, const Parameters& base,
                                        std::optional<std::size_t> left_out) const;

  std::vector<double> clock_, power_, error_, volts_, memory_, temperature_;
  double clock_scale_ = 1, power_scale_ = 1, volts_scale_ = 1, lowest_ = 0;
  bool errors_known_ = false, memory_varies_ = false, temperature_varies_ = false;
};

}  // namespace ergotune::model
