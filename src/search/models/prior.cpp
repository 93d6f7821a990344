#include "search/models/prior.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "search/strategy_base.hpp"

namespace ergotune {
namespace {

/// Per parameter of the space: where the recording has it, and the position of each recorded value.
struct ParameterMapping {
  std::optional<std::size_t> column;
  std::vector<std::optional<std::uint32_t>> position_of;
  std::uint32_t otherwise = 0;
};

std::optional<std::uint32_t> position_of(const Parameter& parameter, const Value& value) {
  const auto found = std::find(parameter.values.begin(), parameter.values.end(), value);
  if (found == parameter.values.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - parameter.values.begin());
}

std::vector<ParameterMapping> meet(const Recording& recording, const SearchSpace& space) {
  std::vector<ParameterMapping> meetings;
  for (const Parameter& parameter : space.parameters()) {
    ParameterMapping& meeting = meetings.emplace_back();
    if (parameter.default_value) meeting.otherwise = position_of(parameter, *parameter.default_value).value_or(0);
    for (std::size_t c = 0; c < recording.parameters.size(); ++c) {
      if (recording.parameters[c].name != parameter.name) continue;
      meeting.column = c;
      for (const Value& value : recording.parameters[c].values)
        meeting.position_of.push_back(position_of(parameter, value));
    }
  }
  return meetings;
}

}  // namespace

PriorResults prior_results(const Recording& recording, const SearchSpace& space, Objective objective,
                           const Completion& complete) {
  PriorResults prior;
  prior.name = recording.file.empty() ? recording.name : recording.file.filename().string();
  if (!recording.device.empty()) prior.name += fmt::format(" on {}", recording.device);
  const std::vector<ParameterMapping> meetings = meet(recording, space);
  const bool any =
      std::any_of(meetings.begin(), meetings.end(), [](const ParameterMapping& m) { return m.column.has_value(); });
  if (!any) return prior;

  std::map<ConfigurationIndex, Outcome> outcomes;
  std::vector<std::uint32_t> positions(space.dimensions());
  objective.forget();
  for (std::size_t row = 0; row < recording.size(); ++row) {
    bool inside = true;
    for (std::size_t p = 0; p < meetings.size() && inside; ++p) {
      const ParameterMapping& meeting = meetings[p];
      const auto at = meeting.column ? meeting.position_of[recording.position(row)[*meeting.column]]
                                     : std::optional(meeting.otherwise);
      inside = at.has_value();
      if (inside) positions[p] = *at;
    }
    const auto index = inside ? space.index_of(positions) : std::nullopt;
    if (!index) continue;
    Measurement measurement = recording.measurement(row);
    if (complete) complete(measurement, space.configuration(*index));
    Outcome outcome = objective.outcome(measurement);
    const auto [known, is_new] = outcomes.try_emplace(*index, outcome);
    if (!is_new && search::scalar_value(outcome) < search::scalar_value(known->second)) known->second = outcome;
  }
  prior.outcomes.assign(outcomes.begin(), outcomes.end());
  return prior;
}

std::size_t usable_outcomes(const PriorResults& prior) {
  return static_cast<std::size_t>(
      std::count_if(prior.outcomes.begin(), prior.outcomes.end(), [](const auto& o) { return o.second.ok; }));
}

}  // namespace ergotune
