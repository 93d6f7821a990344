// How promising a candidate is.
#pragma once

namespace ergotune::search {

/// E[max(0, gain)] for a normal gain of this mean and standard deviation (Jones, Schonlau and Welch, 1998).
double expected_improvement(double gain, double deviation);

/// Its logarithm, which still tells candidates apart where the improvement itself is too small for a number.
double log_expected_improvement(double gain, double deviation);

/// Gains below this many standard deviations, of which none is larger than `largest`, have no log_expected_improvement
/// as large as `wanted`: it distinguishes most candidates without the improvement itself.
double least_deviations(double wanted, double largest);

}  // namespace ergotune::search
