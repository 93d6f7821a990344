// Replays recorded results: an evaluator that needs no hardware, and the table used for scoring.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "evaluate/evaluator.hpp"
#include "store/formats/recording.hpp"

namespace ergotune {

struct Problem;
struct ProblemFile;

/// A recording over a search space: the row of each configuration, and the cost of its evaluation.
class ReplayTable {
 public:
  /// The space consists of the recorded configurations, not of all that the restrictions allow.
  explicit ReplayTable(Recording recording);

  const Recording& recording() const { return recording_; }
  const SearchSpace& space() const { return space_; }
  std::size_t row(ConfigurationIndex index) const { return rows_[index]; }
  Status status(ConfigurationIndex index) const { return recording_.statuses[rows_[index]]; }
  Measurement measurement(ConfigurationIndex index) const { return recording_.measurement(rows_[index]); }
  /// Compilation + verification + kernel times + framework, in s; parts that were not recorded count as 0.
  double seconds(ConfigurationIndex index) const { return seconds_[index]; }
  /// The kernel times alone, in s: the cost of evaluating the configuration again.
  double run_seconds(ConfigurationIndex index) const { return run_seconds_[index]; }

 private:
  Recording recording_;
  SearchSpace space_;
  std::vector<std::size_t> rows_;  // by configuration index
  std::vector<double> seconds_, run_seconds_;
};

/// Answers requests for configurations of `space` from a recording. Parameters are matched by name; a parameter that
/// the recording lacks must have a single value. A configuration that was not recorded is `unsupported`. Throws
/// UserError if the parameters do not match.
std::unique_ptr<Evaluator> make_replay(std::shared_ptr<const Recording> recording, const SearchSpace& space);

/// Returns the recorded measurement of a configuration; nullopt if there is none. Parameters are matched as by
/// make_replay().
using RecordedTruth = std::function<std::optional<Measurement>(const Configuration&)>;
RecordedTruth recorded_truth(std::shared_ptr<const Recording> recording, const SearchSpace& space);

/// The problem of a recording, as far as it is recorded: parameters, restrictions, metrics, objective. The space
/// consists of the recorded configurations if the restrictions are unknown or use properties of the device.
Problem problem_of(const Recording& recording);
SearchSpace space_of(const Recording& recording);

/// Loads a problem file, or, if `device` replays a recording, the problem in the recording `file`. Throws UserError if
/// it is neither.
ProblemFile load_problem_or_recording(const std::filesystem::path& file, std::string_view device);

}  // namespace ergotune
