// How the conditions on one device changed while it measured: other load, heat, clocks. The default configuration is
// measured at intervals; what it took then says how measurements of different times compare.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

/// The drift of one quantity on one device, from configurations that were measured several times.
class Drift {
 public:
  struct Reading {
    ConfigurationIndex configuration = 0;
    double time = 0;     ///< s, the middle of the measurement
    double seconds = 0;  ///< that it took
    double logarithm = 0, relative_error = 0;
    bool searched = false;  ///< the search's own measurement of the configuration, not a baseline run
  };
  /// The logarithm of what a quantity takes at a time over what it takes in the mean of all baseline runs.
  struct Effect {
    double logarithm = 0, deviation = 0;
  };

  void add(const Reading& reading);
  /// Readings of a configuration that was not measured repeatedly have been added for it.
  bool knows(ConfigurationIndex configuration) const;
  /// nullopt where the baseline runs do not differ more than their noise explains (F test at 1 %). Between two runs
  /// that differ the change may have come at any time: the effect is interpolated, and its deviation is that of a step.
  std::optional<Effect> at(double time) const;
  /// Standard deviation of one reading's logarithm, by those that were taken together.
  double noise() const;
  /// Smallest and largest effect, and baseline runs of the configuration that was measured most often; nullopt as at().
  struct Range {
    double least = 0, most = 0;
    std::size_t runs = 0;
  };
  std::optional<Range> range() const;

 private:
  struct Knot {
    double time = 0, logarithm = 0, variance = 0;
  };
  void fit() const;
  std::vector<Reading> of_most_often() const;
  void fit_runs(const std::vector<Reading>& readings) const;
  void refine() const;
  Effect interpolated(double time) const;

  std::vector<Reading> readings_;
  mutable bool fitted_ = true;
  mutable std::vector<Knot> knots_;  ///< by time; empty: no drift
  mutable double noise_ = 0;
  mutable std::size_t runs_ = 0;
};

}  // namespace ergotune
