// Speed against energy efficiency over everything that was recorded (Anzt et al. 2015, Section 3): Pareto
// front, convex hull with its quadrants, and spread of the energy at equal speed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/formats/recording.hpp"

namespace ergotune {

/// A configuration in the plane of Anzt's Figure 5.
struct TradeoffPoint {
  std::size_t row = 0;
  double time = 0, energy = 0;
  /// Work per second and per joule; without a metric for work: launches.
  double speed = 0, efficiency = 0;
  /// Core clock, MHz; NaN where not recorded.
  double clock_mhz = 0;
};

/// Anzt's lines through the fastest and the most efficient configuration.
struct Quadrants {
  std::size_t fastest = 0, most_efficient = 0;  ///< positions in Tradeoff::points
  /// More efficient than the fastest (above the horizontal line).
  std::size_t beat_fastest_in_energy = 0;
  /// Faster than the most efficient (right of the vertical line).
  std::size_t beat_most_efficient_in_speed = 0;
  /// Both: the arc where a weighting of time and energy has its optimum.
  std::size_t beat_both = 0;
  /// What the most efficient saves in energy and loses in speed against the fastest, relative.
  double energy_saved = 0, speed_lost = 0;
};

/// Length of the convex hull along the two lines, as ratios of at least 1.
struct Spread {
  /// Largest over smallest energy of configurations as fast as the most efficient.
  double energy_at_equal_speed = 1;
  /// Longest over shortest time of configurations as efficient as the fastest.
  double time_at_equal_efficiency = 1;
  /// Largest ratio of the energies of two configurations whose times differ by at most 1 %.
  double energy_within_one_percent = 1;
};

struct Tradeoff {
  std::string speed_name, efficiency_name;
  bool has_energy = false;
  std::vector<TradeoffPoint> points;
  std::vector<std::size_t> pareto;  ///< positions in points, fastest first
  std::vector<std::size_t> hull;    ///< counter-clockwise from the most efficient (Anzt's Table II)
  std::optional<Quadrants> quadrants;
  std::optional<Spread> spread;
};

/// Only usable rows with a positive time count; energy is taken as recorded, else recorded power times time.
Tradeoff analyse_tradeoff(const Recording& recording);

/// Positions of the corners of the convex hull, counter-clockwise, collinear points left out.
std::vector<std::size_t> convex_hull(std::span<const double> x, std::span<const double> y);

}  // namespace ergotune
