// Sessions side by side: other devices, other sizes, before and after a change of the code.
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
};

struct Comparison {
  struct Side {
    std::size_t usable = 0;
    std::optional<std::size_t> best;  ///< row of the recording: the one that `show` tells
    double value = 0;                 ///< of the best, as the user reads it
    double standard_error = 0;        ///< 0 where it is unknown
    double half_width = 0;            ///< of the 95 % interval
  };
  /// Both ways for two sessions.
  struct Pair {
    std::size_t a = 0, b = 0;
    std::size_t common = 0;  ///< configurations that worked in both
    /// Spearman's, over those; nullopt below three.
    std::optional<double> rank_correlation;
    /// What is lost in b by using a's best there, relative to b's best (0: nothing; 0.1: a tenth worse), and its
    /// standard error; nullopt where b has not measured it.
    std::optional<double> loss_of_a_in_b, loss_of_b_in_a;
    double loss_error_a_in_b = 0, loss_error_b_in_a = 0;
  };
  /// A configuration that is among the best of at least one session.
  struct Row {
    std::string configuration;
    /// By session: its value and its place among those that worked (from 1); nullopt where it was not measured or
    /// failed.
    std::vector<std::optional<double>> values;
    std::vector<std::optional<std::size_t>> places;
  };
  std::vector<Side> sides;
  std::vector<Pair> pairs;
  std::vector<Row> rows;
  /// Values of the common configurations of the first two sessions, a sample of at most 5000.
  std::vector<std::pair<double, double>> points;
};

/// `top`: how many of each session's best are listed. Configurations are the same where all parameters that both have,
/// and that take more than one value in either, have the same values. Throws UserError where the sessions share no
/// parameter, or one's objective is a front.
Comparison compare_sessions(const std::vector<ComparedSession>& sessions, std::size_t top = 5);

/// Spearman's rank correlation, ties with their mean rank; nullopt below three or where one side does not vary.
std::optional<double> rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace ergotune
