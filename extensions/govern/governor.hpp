// Which clock a program runs at next: the one of least energy per unit of its work, within a bound on how much slower
// it may become. Pure logic: what is measured comes in, a clock goes out.
//
// After identifying a phase of the program at the highest clock, lower clocks are tried in bounded steps: the time per
// unit of work is taken as t(f) = a + b / f, of which the measurements so far give an upper bound, and no clock is
// tried that would exceed the bound on the slowdown by it. Where energy per unit of work rises again, the minimum is
// refined by a parabola. This follows EAR's min_energy policy (Corbalan et al., 2020), which projects time and power
// to other clocks and takes the least energy within a time penalty, and the NVIDIA GPU activity agent of GEOPM, which
// bounds the clock by the activity seen; EnergyUCB (arXiv:2410.11855) explores by upper confidence bounds instead.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace ergotune {

/// What a GPU did for a while at one clock.
struct GovernorSample {
  double seconds = 0, joules = 0;
  double work = 0;                  ///< units of the program's work, fractions included
  double work_error = 0;            ///< of these, how many may be wrong: 1 where they were counted
  std::optional<double> clock_mhz;  ///< that ran
};

struct GovernorOptions {
  double max_slowdown = 0.05;  ///< of the time per unit of work at the highest clock
  double settling = 0.2;       ///< s after a change of the clock that are not measured
};

/// A phase of the program, as far as it is known.
struct GovernedPhase {
  double clock_mhz = 0;            ///< best so far
  bool explored = false;           ///< the search for it has ended
  double seconds = 0, joules = 0;  ///< of all its samples
  double work = 0;
  double watts = 0, rate = 0;  ///< at the highest clock
  double slowdown = 0;         ///< at `clock_mhz`
  double saved = 0;            ///< share of the energy per unit of work that `clock_mhz` saves
  std::size_t clocks_tried = 0;
};

class Governor {
 public:
  /// `clocks`: MHz, ascending, at least one.
  Governor(std::vector<double> clocks, GovernorOptions options);

  /// The clock to run at from now on.
  double clock() const { return clocks_[at_]; }
  /// s that a sample should last at least.
  double sample_seconds() const { return sample_seconds_; }
  /// A sample at clock(), the time to settle left out.
  void observe(const GovernorSample& sample);
  /// `seconds` that passed without a sample, settling for one: they belong to what is tried.
  void pass(double seconds, double joules);

  std::vector<GovernedPhase> phases() const;
  /// s and J spent at clocks that were tried, or while a phase was being recognised.
  double exploring_seconds() const { return exploring_seconds_; }
  double exploring_joules() const { return exploring_joules_; }
  /// J beyond what the same work needs at the best clocks known now.
  double exploring_cost() const;
  /// Estimated slowdown of everything so far.
  double slowdown() const;

 private:
  struct Tried {
    double seconds = 0, joules = 0, work = 0, clock_seconds = 0;
    double counting = 0;      ///< of `work`, how many may be wrong
    double rate_squares = 0;  ///< of the samples' rates, weighted by their time
    std::size_t samples = 0;
    double watts() const { return joules / seconds; }
    double rate() const { return work / seconds; }
    double cost() const { return joules / work; }
    double clock() const { return clock_seconds / seconds; }
    double rate_error() const;  ///< standard error, relative: of counting, and of how far samples differ
    void add(const GovernorSample& sample, double clock_mhz);
    void add(const Tried& other);
  };
  struct Phase {
    std::map<std::size_t, Tried> tried;  ///< by clock
    std::size_t best = 0;                ///< of the clocks that may be used
    bool explored = false;
    int refinements = 0, visits = 0;
    double follows = 1;  ///< share of the time that may follow the clock
    double seconds = 0, joules = 0, work = 0;
  };

  bool fits(const Tried& known, const GovernorSample& sample) const;
  double time_ratio(const Phase& phase, std::size_t clock) const;
  double margin(const Phase& phase, std::size_t clock) const;
  /// With `errors` times the standard errors of the rates.
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
  std::optional<std::size_t> phase_;  ///< nullopt while it is being recognised
  std::vector<GovernorSample> unknown_;
  double unknown_seconds_ = 0, unknown_clock_ = 0;  ///< since the phase before ended, at a clock that was meant for it
  std::optional<double> recent_watts_;              ///< of the last sample at this clock
  int steady_ = 0;
  double exploring_seconds_ = 0, exploring_joules_ = 0;
  double total_seconds_ = 0, lost_seconds_ = 0;
};

}  // namespace ergotune
