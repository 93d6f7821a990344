// Racing: the measurement of a configuration ends where it can no longer win.
#pragma once

#include <string>

#include "ergotune/space.hpp"
#include "search/objective.hpp"

namespace ergotune {

struct Problem;

/// Above this value of a quantity (time or energy) a configuration cannot win any more.
struct RaceBound {
  std::string quantity = "time";
  double above = 1e300;  ///< 1e300: nothing rules it out
};

/// The best result so far, against which a configuration races.
struct RaceLeader {
  const Measurement* measurement = nullptr;
  double value = 0, half_width = 0;  ///< of the objective, turned so that smaller is better
};

/// Time and energy are compared directly. For a metric or expression over one of them, the bound is the value of the
/// quantity at which, with this configuration's parameters, the objective would equal the upper end of the leader's
/// interval. No bound if the objective needs several quantities, does not increase with the quantity, or is not a
/// single one.
RaceBound race_bound(const Objective& objective, const Problem* problem, const Constants& constants,
                     const SearchSpace& space, ConfigurationIndex index, const RaceLeader& leader);

}  // namespace ergotune
