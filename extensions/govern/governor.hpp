// Chooses the clock of a running program: the one with the least energy per unit of work, within a bound on the
// slowdown. Pure logic without I/O: receives samples and returns a clock.
//
// After a phase of the program has been identified at the highest clock, lower clocks are tried in bounded steps. The
// time per unit of work is modelled as t(f) = a + b / f, for which the samples so far give an upper bound; clocks whose
// bound exceeds the allowed slowdown are not tried. Where the energy per unit of work rises again, a parabola refines
// the minimum. This follows EAR's min_energy policy (Corbalan et al., 2020), which projects time and power to other
// clocks and takes the least energy within a time penalty, and the NVIDIA GPU activity agent of GEOPM, which bounds the
// clock by the observed activity; EnergyUCB (arXiv:2410.11855) explores by upper confidence bounds instead.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace ergotune {

/// Time, energy and work of a program at one clock.
struct GovernorSample {
  double seconds = 0, joules = 0;
  double work = 0;                  ///< units of the program's work, including fractions
  double work_error = 0;            ///< uncertainty of `work` in units: 1 if units were counted
  std::optional<double> clock_mhz;  ///< actual clock
};

struct GovernorOptions {
  double max_slowdown = 0.05;  ///< allowed slowdown, relative to the time per unit of work at the highest clock
  double settling = 0.2;       ///< s after a change of the clock during which nothing is measured
};

/// A phase of the program, as known so far.
struct GovernedPhase {
  double clock_mhz = 0;            ///< best so far
  bool explored = false;           ///< the search for its best clock has ended
  double seconds = 0, joules = 0;  ///< over all its samples
  double work = 0;
  double watts = 0, rate = 0;  ///< at the highest clock
  double slowdown = 0;         ///< at `clock_mhz`
  double saved = 0;            ///< relative saving of energy per unit of work at `clock_mhz`
  std::size_t clocks_tried = 0;
};

class Governor {
 public:
  /// `clocks`: MHz, ascending, at least one.
  Governor(std::vector<double> clocks, GovernorOptions options);

  /// The clock to set now, MHz.
  double clock() const { return clocks_[at_]; }
  /// Shortest duration of the next sample, s.
  double sample_seconds() const { return sample_seconds_; }
  /// Adds a sample at clock(), without the time to settle.
  void observe(const GovernorSample& sample);
  /// Adds time and energy without a sample (settling); they count for the clock that is tried.
  void pass(double seconds, double joules);

  std::vector<GovernedPhase> phases() const;
  /// s and J spent at clocks being tried, or while a phase was being recognised.
  double exploring_seconds() const { return exploring_seconds_; }
  double exploring_joules() const { return exploring_joules_; }
  /// J beyond the energy that the same work needs at the best clocks known now.
  double exploring_cost() const;
  /// Estimated relative slowdown over all phases so far.
  double slowdown() const;

 private:
  struct Tried {
    double seconds = 0, joules = 0, work = 0, clock_seconds = 0;
    double counting = 0;      ///< uncertainty of `work` in units
    double rate_squares = 0;  ///< sum of squares of the samples' rates, weighted by their duration
    std::size_t samples = 0;
    double watts() const { return joules / seconds; }
    double rate() const { return work / seconds; }
    double cost() const { return joules / work; }
    double clock() const { return clock_seconds / seconds; }
    double rate_error() const;  ///< relative standard error, from counting and from the scatter of the samples
    void add(const GovernorSample& sample, double clock_mhz);
    void add(const Tried& other);
  };
  struct Phase {
    std::map<std::size_t, Tried> tried;  ///< by clock
    std::size_t best = 0;                ///< among the clocks that satisfy the bound
    bool explored = false;
    int refinements = 0, visits = 0;
    double follows = 1;  ///< share of the time that may be proportional to 1/clock
    double seconds = 0, joules = 0, work = 0;
  };

  bool fits(const Tried& known, const GovernorSample& sample) const;
  double time_ratio(const Phase& phase, std::size_t clock) const;
  double margin(const Phase& phase, std::size_t clock) const;
  /// The lowest allowed clock if rates are worse by `errors` standard errors.
  std::size_t lowest_allowed(const Phase& phase, double errors, double* follows = nullptr) const;
  bool review(Phase& phase);
  void identify();
  void recognise();
  void plan(Phase& phase);
  void go(std::size_t clock);
  bool is_exploring() const;

  std::vector<double> clocks_;
  GovernorOptions options_;
  std::size_t at_ = 0;
  double sample_seconds_ = 0.2;
  std::vector<Phase> phases_;
  std::optional<std::size_t> phase_;  ///< nullopt while the phase is being recognised
  std::vector<GovernorSample> unknown_;
  double unknown_seconds_ = 0, unknown_clock_ = 0;  ///< since the end of the previous phase; at a clock that was chosen
                                                    ///< for that phase
  std::optional<double> recent_watts_;              ///< of the last sample at this clock
  int steady_ = 0;
  double exploring_seconds_ = 0, exploring_joules_ = 0;
  double total_seconds_ = 0, lost_seconds_ = 0;
};

}  // namespace ergotune
