// Replays recorded results: an evaluator without hardware, and the table behind scoring.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ergotune/problem_file.hpp"
#include "evaluate/evaluator.hpp"
#include "store/formats/recording.hpp"

namespace ergotune {

/// A recording laid over a search space: which row holds a configuration, and what evaluating it cost.
class ReplayTable {
 public:
  /// Over the recorded configurations themselves: they are the space, and what restrictions would allow besides them
  /// is not in it.
  explicit ReplayTable(Recording recording);

  const Recording& recording() const { return recording_; }
  const SearchSpace& space() const { return space_; }
  std::size_t row(ConfigurationIndex index) const { return rows_[index]; }
  Status status(ConfigurationIndex index) const { return recording_.statuses[rows_[index]]; }
  Measurement measurement(ConfigurationIndex index) const { return recording_.measurement(rows_[index]); }
  /// Compile + verification + kernel times + framework, in s; what was not recorded counts 0.
  double seconds(ConfigurationIndex index) const { return seconds_[index]; }
  /// The kernel times alone, in s: what evaluating it again costs.
  double run_seconds(ConfigurationIndex index) const { return run_seconds_[index]; }

 private:
  Recording recording_;
  SearchSpace space_;
  std::vector<std::size_t> rows_;  // by configuration index
  std::vector<double> seconds_, run_seconds_;
};

/// Answers requests for configurations of `space` from a recording; parameters meet by name, in any order, and a
/// parameter of the space that the recording lacks may have one value only. A configuration that was not recorded is
/// `unsupported`. Throws UserError when the parameters do not fit.
std::unique_ptr<Evaluator> make_replay(std::shared_ptr<const Recording> recording, const SearchSpace& space);

/// What was recorded of a configuration; nullopt where nothing was. Parameters meet as in make_replay().
using RecordedTruth = std::function<std::optional<Measurement>(const Configuration&)>;
RecordedTruth recorded_truth(std::shared_ptr<const Recording> recording, const SearchSpace& space);

/// The problem a recording was made of, as far as it tells: parameters, restrictions, metrics, objective. Its space
/// holds the recorded configurations where the restrictions are not known, or name what only the device knows.
Problem problem_of(const Recording& recording);
SearchSpace space_of(const Recording& recording);

/// A problem file; or, where `device` replays a recording, the problem that the recording `file` holds. Throws
/// UserError for what is neither.
ProblemFile load_problem_or_recording(const std::filesystem::path& file, std::string_view device);

}  // namespace ergotune
