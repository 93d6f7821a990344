// Energy is measured in half a second, time in milliseconds: what energy a configuration would need, by its time alone.
#pragma once

#include <cstddef>

#include "ergotune/result.hpp"

namespace ergotune {

/// The power of a kernel's configurations at one setting of the clocks, as a power of their time, with an exponent
/// between -1 (the energy is the same whatever the time) and 0 (the power is).
class EnergyByTime {
 public:
  struct Guess {
    double energy = 0;
    double deviation = 0;  ///< of its logarithm
    /// Below this it is unlikely to be.
    double least() const;
  };

  /// Takes what has a time and an energy.
  void add(const Measurement& measurement);
  bool empty() const { return n_ == 0; }
  /// With the power of 1 W while no energy is known, which is enough to compare configurations.
  Guess at(double time) const;
  /// s above which the energy is unlikely to be less than this; infinity while nothing is known.
  double longest(double energy) const;
  /// Rises when guesses have changed by more than a percent or two.
  std::size_t revision() const { return revision_; }

 private:
  double n_ = 0, sum_x_ = 0, sum_y_ = 0, sum_xx_ = 0, sum_xy_ = 0, sum_yy_ = 0;  ///< logarithms of time and power
  double level_ = 0, exponent_ = 0, deviation_ = 0, centre_ = 0, reported_level_ = 0, reported_exponent_ = 0;
  std::size_t revision_ = 0;
};

/// Whether only its time is known, of a session that measures energy.
bool lacks_energy(const Measurement& measurement);

}  // namespace ergotune
