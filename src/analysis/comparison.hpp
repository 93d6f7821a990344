// Compares sessions: other devices, other sizes, before and after a change of the code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/objective.hpp"
#include "store/formats/recording.hpp"

namespace ergotune {

struct ComparedSession {
  const Recording* recording = nullptr;
  Objective* objective = nullptr;
  /// In which the compared sessions of a problem differ.
  Constants differing_constants;
};

struct Comparison {
  struct Side {
    std::size_t usable = 0;
    std::optional<std::size_t> best;  ///< row of the recording, the same as in `show`
    double value = 0;                 ///< of the best, in the user's terms
    double standard_error = 0;        ///< 0: unknown
    double half_width = 0;            ///< of the 95 % interval
  };
  /// Comparison of two sessions, in both directions.
  struct Pair {
    std::size_t a = 0, b = 0;
    std::size_t common = 0;  ///< configurations that worked in both
    /// Spearman's rank correlation over these; nullopt for fewer than three.
    std::optional<double> rank_correlation;
    /// Relative loss in b when a's best is used there instead of b's best (0: none; 0.1: a tenth worse), and the
    /// converse; nullopt if the other session has not measured it. The standard errors follow.
    std::optional<double> loss_of_a_in_b, loss_of_b_in_a;
    double loss_error_a_in_b = 0, loss_error_b_in_a = 0;
  };
  /// A configuration that is among the best of at least one session.
  struct Row {
    std::string configuration;
    /// By session: its value, and its rank among the usable configurations (from 1); nullopt if it was not measured or
    /// failed.
    std::vector<std::optional<double>> values;
    std::vector<std::optional<std::size_t>> places;
    std::vector<double> half_widths;  ///< of the 95 % interval of each value; 0: unknown
    /// '~' for values that did not converge, '!' for those that were stopped early, as in `show`.
    std::vector<std::string> marks;
  };
  std::vector<Side> sides;
  std::vector<Pair> pairs;
  std::vector<Row> rows;
  /// Values of the common configurations in the first two sessions, at most a sample of 5000.
  std::vector<std::pair<double, double>> points;
};

/// `top`: number of best configurations listed per session. Two configurations are equal if they agree in all
/// parameters that both sessions have and that vary in one of them. Throws UserError if the sessions share no
/// parameter, or if an objective is a Pareto one.
Comparison compare_sessions(const std::vector<ComparedSession>& sessions, std::size_t top = 5);

/// Spearman's rank correlation; ties get their mean rank. nullopt for fewer than three values, or if one side does not
/// vary.
std::optional<double> rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace ergotune
