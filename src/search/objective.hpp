// The user's objective, which ranks measurements.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ergotune/objective.hpp"
#include "ergotune/result.hpp"
#include "ergotune/strategy.hpp"
#include "store/formats/recording.hpp"

namespace ergotune {

struct Problem;

/// An objective: single ("energy", "max gflops", any expression over quantities, metrics and best(quantity)), weighted
/// (an expression), lexicographic, constrained ("energy subject to time <= 1.1 * best(time)") or Pareto. Its forms are
/// - [max|min] EXPRESSION: over quantities, metrics and best(NAME)
/// - OBJECTIVE subject to CONDITION: a comparison, or several joined by "and"
/// - pareto(OBJECTIVE, OBJECTIVE, ...)
/// - lexicographic(OBJECTIVE [within 5 %], OBJECTIVE, ...): values of a level within a tolerance (default 1 %) of its
///   best count as equal; the next level decides between them
///
/// best(NAME) is the smallest usable value of a quantity or metric so far, or the largest if a condition bounds NAME
/// from below ("gflops >= 0.9 * best(gflops)").
class Objective {
 public:
  enum class Kind { single, constrained, lexicographic, pareto };
  /// Parses an objective; `metrics` are the known metrics. Throws UserError with the place of the error.
  static Objective parse(const ObjectiveSpec& spec, const std::vector<Metric>& metrics);

  Kind kind() const;
  /// The objective in a form that can be stored and compared: for a single term, the text without a leading max or min,
  /// and the direction; else the text alone.
  const ObjectiveSpec& spec() const;
  /// The text without direction: "gflops" of "max gflops". Equals spec().text.
  const std::string& name() const;
  /// For people: "max gflops", "time".
  std::string title() const;
  Direction direction() const;
  /// Unit of value(): SI or a metric's unit ("J s" for "energy * time"); empty if it has none or is unknown.
  const std::string& unit() const;
  /// The quantity or metric that value() returns unchanged; empty if value() is computed from it ("2 * time").
  std::string quantity() const;
  /// Number of values in an Outcome: the number of objectives of a Pareto objective, else 1. A constrained objective is
  /// reduced to one value: a configuration that violates its condition gets a value above all that satisfy it.
  std::size_t count() const;
  /// Quantities that have to be measured ("time", "energy").
  std::vector<std::string> quantities() const;
  bool needs(const std::string& quantity) const;

  /// Records a measurement, which may change best(quantity), and returns its outcome for a strategy. Values are
  /// transformed so that smaller is better. Zero, negative energies and non-finite numbers count as failures.
  Outcome outcome(const Measurement& measurement);
  /// Increases when outcomes of earlier measurements may have changed: a better best(NAME), a new first level of a
  /// lexicographic objective. Callers may then compute outcomes again and pass them to the strategy again
  /// (ergotune/strategy.hpp).
  std::uint64_t revision() const;
  /// Discards all recorded measurements, and with them best(NAME) and the bands of a lexicographic objective.
  void forget();
  /// Whether `a` is better than `b`, given the measurements recorded so far.
  bool better(const Measurement& a, const Measurement& b) const;
  /// Positions of the usable measurements, best first by better(), equal ones in their original order; for a Pareto
  /// objective the front only, ordered by its first objective. Faster than comparing with better().
  std::vector<std::size_t> order(std::span<const Measurement* const> measurements) const;
  /// Whether a usable measurement is outside of the condition of a constrained objective, given the measurements
  /// recorded so far.
  bool violates_condition(const Measurement& measurement) const;
  /// The primary value in the user's terms (not transformed); nullopt for a failure.
  std::optional<double> value(const Measurement& measurement) const;

  Objective(const Objective&);
  Objective& operator=(const Objective&);
  Objective(Objective&&) noexcept;
  Objective& operator=(Objective&&) noexcept;
  ~Objective();

 private:
  struct State;
  explicit Objective(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The metrics for Objective::parse(): `metrics`, and each unknown name of `names` (fields of a program's output) as a
/// metric.
std::vector<Metric> with_names(std::vector<Metric> metrics, const std::vector<std::string>& names);
/// Names of the columns of a recording.
std::vector<std::string> column_names(const Recording& recording);
/// The metrics of a problem, and the fields of its program's output as metrics.
std::vector<Metric> known_metrics(const Problem& problem);

}  // namespace ergotune
