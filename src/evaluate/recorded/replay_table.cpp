#include <cmath>

#include "ergotune/problem.hpp"
#include "ergotune/problem_file.hpp"
#include "evaluate/recorded/replay.hpp"

namespace ergotune {
namespace {

std::vector<Configuration> configurations(const Recording& recording) {
  std::vector<Configuration> list;
  list.reserve(recording.size());
  for (std::size_t row = 0; row < recording.size(); ++row) list.push_back(recording.configuration(row));
  return list;
}

double cost(const std::vector<float>& column, std::size_t row) {
  return row < column.size() && std::isfinite(column[row]) ? static_cast<double>(column[row]) : 0.0;
}

}  // namespace

ReplayTable::ReplayTable(Recording recording)
    : recording_(std::move(recording)),
      space_(SearchSpace::from_configurations(recording_.parameters, configurations(recording_))),
      rows_(space_.size(), 0),
      seconds_(space_.size(), 0.0),
      run_seconds_(space_.size(), 0.0) {
  for (std::size_t row = 0; row < recording_.size(); ++row) {
    const auto index = space_.index_of(recording_.position(row));
    if (!index) throw Error("a recorded configuration is missing from its own space");
    rows_[*index] = row;
    run_seconds_[*index] = cost(recording_.run_seconds, row);
    seconds_[*index] = cost(recording_.compile_seconds, row) + cost(recording_.verify_seconds, row) +
                       run_seconds_[*index] + cost(recording_.framework_seconds, row);
  }
}

SearchSpace space_of(const Recording& recording) {
  if (recording.restrictions_known) {
    try {
      return SearchSpace::build(recording.parameters, recording.restrictions);
    } catch (const UserError&) {
      // The restrictions use properties of the device (device.max_threads_per_block).
    }
  }
  return SearchSpace::from_configurations(recording.parameters, configurations(recording));
}

Problem problem_of(const Recording& recording) {
  Problem problem;
  problem.name = recording.name;
  problem.file = recording.file;
  problem.parameters = recording.parameters;
  problem.restrictions = recording.restrictions;
  problem.metrics = recording.metrics;
  problem.objective = recording.objective;
  return problem;
}

ProblemFile load_problem_or_recording(const std::filesystem::path& file, std::string_view device) {
  try {
    return load_problem(file);
  } catch (const UserError&) {
    if (!device.starts_with("replay:")) throw;
    ProblemFile problem;
    try {
      problem = problem_of(load_recording(file));
    } catch (const UserError&) {
    }
    if (problem.parameters.empty()) throw;
    return problem;
  }
}

}  // namespace ergotune
