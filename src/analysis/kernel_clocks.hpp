// Whether kernels that run one after the other should each have a clock of their own: what they save against the time
// that a change of clock takes.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace ergotune {

/// Time and energy of a stretch of launches at one clock.
struct AtClock {
  double clock_mhz = 0, seconds = 0, joules = 0;
  double joules_error = 0;  ///< standard error
};

/// Launches of one kernel in a row.
struct KernelStretch {
  std::string kernel;
  std::vector<AtClock> at;  ///< the same clocks in each stretch, ascending
};

struct KernelClocks {
  double common_mhz = 0;  ///< of least energy as the one clock of all
  double common_seconds = 0, common_joules = 0;
  std::vector<double> clocks_mhz;     ///< of each stretch, changes included: of least energy
  double seconds = 0, joules = 0;     ///< with them
  double saved = 0, saved_error = 0;  ///< J against the common clock, and its standard error
  std::size_t changes = 0;            ///< of the clock, in one iteration
  bool pays = false;                  ///< the saving is above 0 with 95 % certainty
};

/// The clocks of least energy for stretches that repeat in this order, together at most `max_slowdown` (0.05: 5 %)
/// slower than at the one clock at which they are fastest. A change of clock is requested when a stretch begins, and is
/// in force `latency` s later; until then the stretch runs at the clock before, and one that ends earlier gets no clock
/// of its own (SYnergy, SC 2023, sets clocks per kernel under the same limit). Throws UserError for stretches without
/// clocks.
KernelClocks choose_kernel_clocks(const std::vector<KernelStretch>& stretches, double latency,
                                  double max_slowdown = std::numeric_limits<double>::infinity());

}  // namespace ergotune
