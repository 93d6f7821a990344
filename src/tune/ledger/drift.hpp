// Drift: how all values measured on one device change with time (other load, heat, clocks). The default configuration
// is measured at intervals; the changes of its values show how measurements of different times compare.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

/// The drift of one quantity on one device, estimated from configurations that were measured several times.
class Drift {
 public:
  struct Reading {
    ConfigurationIndex configuration = 0;
    double time = 0;     ///< s, middle of the measurement
    double seconds = 0;  ///< s, duration of the measurement
    double logarithm = 0, relative_error = 0;
    bool searched = false;  ///< measured by the search, not as a baseline run
  };
  /// ln(value of the quantity at some time / its mean over all baseline runs), and the standard deviation of that
  /// logarithm.
  struct Effect {
    double logarithm = 0, deviation = 0;
  };

  void add(const Reading& reading);
  /// Whether a reading of this configuration has been added.
  bool knows(ConfigurationIndex configuration) const;
  /// The drift at a time, in s. nullopt if the baseline runs differ by no more than their noise explains (F test at 1
  /// %). Between two runs that differ, the moment of the change is unknown: the effect is interpolated, and its
  /// deviation is that of a step.
  std::optional<Effect> at(double time) const;
  /// Standard deviation of the logarithm of one reading, from readings that were taken together.
  double noise() const;
  /// Smallest and largest effect, and the number of baseline runs of the most often measured configuration; nullopt as
  /// for at().
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
  mutable std::vector<Knot> knots_;  ///< sorted by time; empty: no drift
  mutable double noise_ = 0;
  mutable std::size_t runs_ = 0;
};

}  // namespace ergotune
