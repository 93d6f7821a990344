// Speed and energy efficiency of all recorded configurations (Anzt et al. 2015, Section 3): Pareto front, convex hull
// with its quadrants, and spread of the energy at equal speed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/formats/recording.hpp"

namespace ergotune {

/// A configuration in the plane of Figure 5 of Anzt et al.
struct TradeoffPoint {
  std::size_t row = 0;
  double time = 0, energy = 0;
  /// Work per second and per joule; launches count as work if there is no metric for work.
  double speed = 0, efficiency = 0;
  /// Core clock, MHz; NaN: not recorded.
  double clock_mhz = 0;
};

/// The lines through the fastest and the most efficient configuration (Anzt et al.).
struct Quadrants {
  std::size_t fastest = 0, most_efficient = 0;  ///< positions in Tradeoff::points
  /// Configurations that are more efficient than the fastest (above the horizontal line).
  std::size_t beat_fastest_in_energy = 0;
  /// Configurations that are faster than the most efficient (right of the vertical line).
  std::size_t beat_most_efficient_in_speed = 0;
  /// Both: the region where a weighted sum of time and energy has its optimum.
  std::size_t beat_both = 0;
  /// Relative energy saving and speed loss of the most efficient compared to the fastest.
  double energy_saved = 0, speed_lost = 0;
  /// The same loss as a share of the time of the fastest.
  double time_added() const { return 1 / (1 - speed_lost) - 1; }
};

/// Extent of the convex hull along the two lines, as ratios of at least 1.
struct Spread {
  /// Largest over smallest energy at the speed of the most efficient configuration.
  double energy_at_equal_speed = 1;
  /// Longest over shortest time at the efficiency of the fastest configuration.
  double time_at_equal_efficiency = 1;
  /// Largest ratio of the energies of two configurations whose times differ by at most 1 %.
  double energy_within_one_percent = 1;
};

struct Tradeoff {
  std::string speed_name, efficiency_name;
  bool has_energy = false;
  std::vector<TradeoffPoint> points;
  std::vector<std::size_t> pareto;  ///< positions in points, fastest first
  std::vector<std::size_t> hull;    ///< counter-clockwise from the most efficient (Table II of Anzt et al.)
  std::optional<Quadrants> quadrants;
  std::optional<Spread> spread;
};

/// Includes usable rows with a positive time. Energy is the recorded one, else recorded power times time.
Tradeoff analyse_tradeoff(const Recording& recording);

/// Positions of the corners of the convex hull, counter-clockwise, without collinear points.
std::vector<std::size_t> convex_hull(std::span<const double> x, std::span<const double> y);

}  // namespace ergotune
