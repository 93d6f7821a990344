// Correlations of counters and parameters with speed and energy efficiency over all recorded configurations, with
// intervals (Anzt et al. 2015, Sections 3.5 and 3.6), and which of them change between the two; levels of occupancy;
// the sweep of M = a t + (1 - a) e; rooflines of time and energy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/tradeoff.hpp"
#include "store/formats/recording.hpp"

namespace ergotune {

/// A Pearson correlation with its 95 % interval (percentiles of a bootstrap over configurations).
struct Association {
  double r = 0, low = 0, high = 0;
  /// p-value for no correlation (Fisher's transformation), after Holm's correction over all reported correlations.
  double p = 1;
};

struct Influence {
  std::string name;
  bool is_parameter = false;
  std::size_t count = 0;  ///< configurations that have a value
  Association speed, efficiency, product;
  /// Positions in the lists sorted by correlation with speed and with efficiency; 0 is the most negative.
  std::size_t place_in_speed = 0, place_in_efficiency = 0;
  /// Correlation with efficiency minus that with speed, its interval, and its p-value after Holm's correction over all
  /// these differences.
  Association shift;
  /// Printed in bold by Anzt et al.: the shift and one of the correlations are significant (p < 0.05), and the sign
  /// changes, or the position changes by a quarter of the list.
  bool moves = false;
};

struct InfluenceOptions {
  std::size_t replicates = 1000;
  std::uint64_t seed = 1;
};

/// All quantities and numeric parameters that vary, sorted by their correlation with speed; time, energy and values
/// derived from them are excluded. Empty for fewer than eight configurations. Without energy only `speed` is set.
std::vector<Influence> influences(const Recording& recording, const Tradeoff& tradeoff,
                                  const InfluenceOptions& options = {});

/// Holm's step-down correction; p-values in the given order.
std::vector<double> holm_adjusted(std::span<const double> p);

/// Configurations with the same value of a quantity (occupancy: rounded to 1/64, its finest step).
struct Level {
  double value = 0;
  std::size_t count = 0;
  double speed = 0, speed_error = 0, efficiency = 0, efficiency_error = 0;  ///< means and standard errors
};
/// Sorted by value; empty if the quantity was not recorded or has more than 32 levels.
std::vector<Level> levels_of(const Recording& recording, const Tradeoff& tradeoff, const std::string& quantity);

/// The configuration that minimises M = a t / t0 + (1 - a) e / e0 for a in [from, to]; t0 and e0 are the least time and
/// energy.
struct WeightedBest {
  double from = 0, to = 1;
  std::size_t point = 0;  ///< position in Tradeoff::points
};
/// From a = 0 (energy only) to a = 1 (time only); empty without energy.
std::vector<WeightedBest> weighted_sweep(const Tradeoff& tradeoff);

/// A configuration in the roofline diagram (Williams et al. 2009; for energy: Choi et al. 2013).
struct RooflinePoint {
  std::size_t point = 0;  ///< position in Tradeoff::points
  double intensity = 0;   ///< operations per byte of device memory
  double rate = 0;        ///< operations per second
  double per_joule = 0;   ///< operations per J; NaN without energy
};
struct Roofline {
  std::vector<RooflinePoint> points;
  /// The highest measured rates, here and in the recordings given for the peaks: per second and per J.
  double peak_rate = 0, peak_bandwidth = 0, peak_per_joule = 0, peak_bytes_per_joule = 0;
  std::string work;   ///< source of the operations: "flop_count_sp", "gflops"
  std::string peaks;  ///< source of the peaks, for people
  /// The roof at an intensity, per second and per J.
  double roof(double intensity) const;
  double energy_roof(double intensity) const;
};
/// Requires bytes of device memory (dram_read_bytes and dram_write_bytes, or the chip's own counters) and operations:
/// counted ones, else from the metric for work per second. `peaks`: recordings of kernels that reach the device's peaks
/// (a copy, chains of multiply-adds). nullopt if bytes or operations were not recorded.
std::optional<Roofline> roofline_of(const Recording& recording, const Tradeoff& tradeoff,
                                    std::span<const Recording> peaks = {});

/// A few sentences on what limits the fastest configuration and how the most efficient one differs from it.
std::vector<std::string> explain(const Recording& recording, const Tradeoff& tradeoff,
                                 const std::vector<Influence>& influences, const std::optional<Roofline>& roofline);

}  // namespace ergotune
