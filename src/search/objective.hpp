// What the user wants, in a form that orders measurements.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "ergotune/result.hpp"
#include "ergotune/strategy.hpp"
#include "store/formats/recording.hpp"

namespace ergotune {

/// An objective: single ("energy", "max gflops", any expression over quantities, metrics and best(quantity)),
/// weighted (an expression), lexicographic, constrained ("energy subject to time <= 1.1 * best(time)") or
/// Pareto.
///
///   [max|min] EXPRESSION                      over quantities, metrics and best(NAME)
///   OBJECTIVE subject to CONDITION            CONDITION: a comparison, several joined by "and"
///   pareto(OBJECTIVE, OBJECTIVE, ...)
///   lexicographic(OBJECTIVE [within 5 %], OBJECTIVE, ...)   a level counts as equal to its best within a
///   tolerance
///                                                           (default 1 %); the next level decides there
///
/// best(NAME) is the smallest usable value of a quantity or metric seen so far, and the largest where a
/// condition bounds that name from below ("gflops >= 0.9 * best(gflops)").
class Objective {
 public:
  enum class Kind { single, constrained, lexicographic, pareto };
  /// Parses an ObjectiveSpec against the metrics' names. Throws UserError with its place.
  static Objective parse(const ObjectiveSpec& spec, const std::vector<Metric>& metrics);

  Kind kind() const;
  /// What is wanted, as a value that can be kept and compared: the text without a leading max or min, and the
  /// direction, where there is one term; else the text alone.
  const ObjectiveSpec& spec() const;
  /// What is improved, without its direction: "gflops" of "max gflops". spec().text.
  const std::string& name() const;
  /// For people: "max gflops", "time".
  std::string title() const;
  Direction direction() const;
  /// Of value(): SI or a metric's ("J s" of "energy * time"); empty where it has none or is unknown.
  const std::string& unit() const;
  /// The quantity or metric that value() is, as it stands; empty where it is worked out ("2 * time").
  std::string quantity() const;
  /// Values in an Outcome: the number of objectives of a Pareto objective; 1 for every other kind, which is
  /// folded into one value (a configuration that breaks its condition gets a value above all that meet
  /// it).
  std::size_t count() const;
  /// Quantities it needs to be measured ("time", "energy").
  std::vector<std::string> quantities() const;
  bool needs(const std::string& quantity) const;

  /// Takes note of a measurement, so that best(quantity) is known; the outcome to tell a strategy. Values are
  /// turned so that smaller is better; zero, negative energies and non-finite numbers are failures, never
  /// winners.
  Outcome outcome(const Measurement& measurement);
  /// Grows when what is known changes what earlier measurements are worth: a better best(NAME), a new first
  /// level of a lexicographic objective. Outcomes may then be requested again, and told again
  /// (ergotune/strategy.hpp).
  std::uint64_t revision() const;
  /// Forgets every measurement, and with them best(NAME) and the bands of a lexicographic objective.
  void forget();
  /// True when `a` is better than `b` under what is known now.
  bool better(const Measurement& a, const Measurement& b) const;
  /// Positions of the usable ones, best first (by better(), equals in their order); of a Pareto objective the
  /// front only, in the order of its first objective. The same as asking better() again and again, in a
  /// fraction of its time.
  std::vector<std::size_t> order(std::span<const Measurement* const> measurements) const;
  /// The primary value as the user reads it (not turned); nullopt for a failure.
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

/// For Objective::parse(): `metrics`, and each unknown one of `names` (what a program's output says) as if it were one.
std::vector<Metric> with_names(std::vector<Metric> metrics, const std::vector<std::string>& names);
/// Of a recording.
std::vector<std::string> column_names(const Recording& recording);
/// The same of a problem: what its program's output says.
std::vector<Metric> known_metrics(const Problem& problem);

}  // namespace ergotune
