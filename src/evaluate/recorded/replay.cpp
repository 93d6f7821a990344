#include "evaluate/recorded/replay.hpp"

#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

#include "base/clock.hpp"
#include "base/hash.hpp"
#include "base/statistics.hpp"
#include "ergotune/problem.hpp"
#include "ergotune/problem_file.hpp"

namespace ergotune {
namespace {

/// What was measured for a recording is replayed; other values keep their provenance.
Provenance when_replayed(Provenance recorded) {
  return recorded == Provenance::measured ? Provenance::replayed : recorded;
}

/// The value positions of a recorded row as a map key.
std::string key_of(std::span<const std::uint32_t> positions) {
  return {reinterpret_cast<const char*>(positions.data()), positions.size() * sizeof(std::uint32_t)};
}

/// Finds the rows of a recording for configurations of another space; parameters are matched by name.
class RecordedRows {
 public:
  RecordedRows(std::shared_ptr<const Recording> recording, const SearchSpace& space)
      : recording_(std::move(recording)) {
    match_parameters(space);
    rows_.reserve(recording_->size());
    for (std::size_t row = 0; row < recording_->size(); ++row) rows_[key_of(recording_->position(row))] = row;
  }

  std::string description() const {
    return fmt::format("replay of {} ({})", recording_->file.empty() ? recording_->name : recording_->file.string(),
                       recording_->device.empty() ? "device unknown" : recording_->device);
  }

  Provenance provenance() const { return when_replayed(recording_->provenance); }

  /// nullopt if it was not recorded.
  std::optional<Measurement> measurement(const Configuration& configuration) const {
    const auto row = find(configuration);
    if (!row) return std::nullopt;
    Measurement measurement = recording_->measurement(*row);
    add_energy(measurement);
    for (auto& [name, quantity] : measurement.quantities) quantity.provenance = when_replayed(quantity.provenance);
    return measurement;
  }

 private:
  // Position of a space's parameter in the recording, and positions of its values there.
  struct Match {
    std::size_t position = 0;
    std::vector<std::pair<Value, std::uint32_t>> values;
  };
  static constexpr std::size_t kAbsent = ~std::size_t{0};

  void match_parameters(const SearchSpace& space) {
    std::vector<bool> met(recording_->parameters.size(), false);
    std::vector<std::string> names;
    for (const auto& parameter : recording_->parameters) names.push_back(parameter.name);
    for (const auto& parameter : space.parameters()) {
      Match match{kAbsent, {}};
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i] != parameter.name) continue;
        match.position = i;
        met[i] = true;
        const auto& values = recording_->parameters[i].values;
        for (std::uint32_t v = 0; v < values.size(); ++v) match.values.emplace_back(values[v], v);
      }
      if (match.position == kAbsent && parameter.values.size() > 1)
        throw UserError(fmt::format("{} has no parameter \"{}\"{}: it cannot be replayed for this problem",
                                    description(), parameter.name, suggestion(parameter.name, names)));
      matches_.push_back(std::move(match));
    }
    for (std::size_t i = 0; i < met.size(); ++i)
      if (!met[i] && recording_->parameters[i].values.size() > 1)
        throw UserError(fmt::format("{} varies \"{}\", which this problem does not have", description(), names[i]));
  }

  std::optional<std::size_t> find(const Configuration& configuration) const {
    std::vector<std::uint32_t> positions(recording_->parameters.size(), 0);
    for (std::size_t i = 0; i < matches_.size() && i < configuration.size(); ++i) {
      if (matches_[i].position == kAbsent) continue;
      bool found = false;
      for (const auto& [value, position] : matches_[i].values) {
        if (!(value == configuration[i])) continue;
        positions[matches_[i].position] = position;
        found = true;
        break;
      }
      if (!found) return std::nullopt;
    }
    const auto it = rows_.find(key_of(positions));
    return it == rows_.end() ? std::nullopt : std::optional(it->second);
  }

  // Adds energy if power and time were recorded.
  static void add_energy(Measurement& measurement) {
    auto& quantities = measurement.quantities;
    if (quantities.contains("energy") || !quantities.contains("power") || !quantities.contains("time")) return;
    const Quantity power = quantities.at("power"), time = quantities.at("time");
    Quantity energy = power;
    energy.value = power.value * time.value;
    const ErrorEstimate terms[] = {{power.standard_error * time.value, power.degrees},
                                   {time.standard_error * power.value, time.degrees}};
    const ErrorEstimate error = combined_error(terms);
    energy.standard_error = error.standard_error;
    energy.degrees = error.degrees;
    energy.method = "recorded power times recorded time";
    quantities["energy"] = std::move(energy);
  }

  std::shared_ptr<const Recording> recording_;
  std::vector<Match> matches_;
  std::unordered_map<std::string, std::size_t> rows_;
};

class Replay : public QueuedEvaluator {
 public:
  Replay(std::shared_ptr<const Recording> recording, const SearchSpace& space) : rows_(std::move(recording), space) {}

  std::string description() const override { return rows_.description(); }
  Provenance provenance() const override { return rows_.provenance(); }

 private:
  EvaluationResult answer(const EvaluationRequest& request) override {
    EvaluationResult result;
    if (auto recorded = rows_.measurement(request.configuration)) {
      result.measurement = std::move(*recorded);
    } else {
      result.measurement.status = Status::unsupported;
      result.measurement.message = "this configuration was not recorded";
    }
    result.measurement.finished_at = wall_seconds();
    return result;
  }

  RecordedRows rows_;
};

}  // namespace

std::unique_ptr<Evaluator> make_replay(std::shared_ptr<const Recording> recording, const SearchSpace& space) {
  return std::make_unique<Replay>(std::move(recording), space);
}

RecordedTruth recorded_truth(std::shared_ptr<const Recording> recording, const SearchSpace& space) {
  const auto rows = std::make_shared<const RecordedRows>(std::move(recording), space);
  return [rows](const Configuration& configuration) { return rows->measurement(configuration); };
}

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
