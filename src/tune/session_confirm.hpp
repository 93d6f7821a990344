// Before a winner is reported: the best candidates and the default are measured again, side by side.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ergotune/evaluate/evaluator.hpp"
#include "ergotune/search/objective.hpp"

namespace ergotune {

struct Candidate {
  ConfigurationIndex index = 0;
  Configuration configuration;
  Measurement first;                ///< as found by the search
  std::vector<Measurement> rounds;  ///< measured again
  bool is_default = false;
};

/// The mean of several measurements of one configuration: each quantity's value is the mean of the rounds,
/// its standard error holds both the rounds' own errors and their scatter. The first failure, where there is
/// one.
Measurement combine(const std::vector<Measurement>& rounds);

/// The probability of each candidate to be the best, given values (smaller is better) and their standard
/// errors, if the errors are normal and independent. Monte Carlo with a fixed seed.
std::vector<double> probability_of_being_best(const std::vector<double>& values,
                                              const std::vector<double>& errors);

/// Measures every candidate `rounds` times through the evaluator, in an order that changes from round to
/// round. `complete` fills in metrics; `interrupted` ends it early (false is returned).
bool measure_side_by_side(Evaluator& evaluator, std::vector<Candidate>& candidates, int rounds,
                          const std::function<void(Measurement&, const Configuration&)>& complete,
                          const std::function<bool()>& interrupted);

}  // namespace ergotune
