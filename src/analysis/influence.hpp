// What goes with speed and with energy efficiency over everything that was recorded (Anzt et al. 2015, Sections 3.5
// and 3.6): correlations of counters and parameters with intervals, those whose place moves from one to the other,
// levels of occupancy, the sweep of M = a t + (1 - a) e, and rooflines of time and of energy.
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
  /// Of no correlation (Fisher's transformation), after Holm's correction for all reported correlations.
  double p = 1;
};

struct Influence {
  std::string name;
  bool is_parameter = false;
  std::size_t count = 0;  ///< configurations that have it
  Association speed, efficiency, product;
  /// Positions when sorted by the correlation, from the most negative (0), with speed and with efficiency.
  std::size_t place_in_speed = 0, place_in_efficiency = 0;
  /// Efficiency's correlation less speed's, its interval, and p after Holm's correction for all such differences.
  Association shift;
  /// Anzt's bold ones: the shift is significant (p < 0.05), as is one of the correlations, and the sign changes, or the
  /// place by a quarter of the list.
  bool moves = false;
};

struct InfluenceOptions {
  std::size_t replicates = 1000;
  std::uint64_t seed = 1;
};

/// Every quantity and numeric parameter that varies, but for what follows from time and energy itself (they, their
/// metrics), sorted by the correlation with speed. Empty for fewer than eight configurations. Without energy only
/// `speed` is filled.
std::vector<Influence> influences(const Recording& recording, const Tradeoff& tradeoff,
                                  const InfluenceOptions& options = {});

/// Holm's step-down correction: p-values in the order given.
std::vector<double> holm_adjusted(std::span<const double> p);

/// Configurations with the same value of a quantity (occupancy: rounded to 1/64, the finest that it comes in).
struct Level {
  double value = 0;
  std::size_t count = 0;
  double speed = 0, speed_error = 0, efficiency = 0, efficiency_error = 0;  ///< means with standard errors
};
/// Rising; empty where the quantity was not recorded or has more than 32 levels.
std::vector<Level> levels_of(const Recording& recording, const Tradeoff& tradeoff, const std::string& quantity);

/// The configuration that minimises M = a t / t0 + (1 - a) e / e0 for a in [from, to]; t0 and e0 are the least time and
/// energy.
struct WeightedBest {
  double from = 0, to = 1;
  std::size_t point = 0;  ///< position in Tradeoff::points
};
/// From a = 0 (energy alone) to a = 1 (time alone); empty without energy.
std::vector<WeightedBest> weighted_sweep(const Tradeoff& tradeoff);

/// A configuration below the roofs (Williams et al. 2009; of energy: Choi et al. 2013).
struct RooflinePoint {
  std::size_t point = 0;  ///< position in Tradeoff::points
  double intensity = 0;   ///< operations per byte of device memory
  double rate = 0;        ///< operations per second
  double per_joule = 0;   ///< operations per J; NaN without energy
};
struct Roofline {
  std::vector<RooflinePoint> points;
  /// The highest seen, here and in what was given for the peaks: per second and per J.
  double peak_rate = 0, peak_bandwidth = 0, peak_per_joule = 0, peak_bytes_per_joule = 0;
  std::string work;   ///< where operations come from: "flop_count_sp", "gflops"
  std::string peaks;  ///< where the peaks come from, in words
  /// What the roof allows at an intensity, per second and per J.
  double roof(double intensity) const;
  double energy_roof(double intensity) const;
};
/// Needs bytes of device memory (dram_read_bytes and dram_write_bytes, or the chip's own) and operations: counted, else
/// the metric for work per second. `peaks` are recordings of kernels that reach them (a copy, chains of multiply-adds);
/// nullopt where bytes or operations were not recorded.
std::optional<Roofline> roofline_of(const Recording& recording, const Tradeoff& tradeoff,
                                    std::span<const Recording> peaks = {});

/// A few sentences: what the fastest is limited by, and what distinguishes the most efficient from it.
std::vector<std::string> explain(const Recording& recording, const Tradeoff& tradeoff,
                                 const std::vector<Influence>& influences, const std::optional<Roofline>& roofline);

}  // namespace ergotune
