#include "store/formats/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/statistics.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "store/formats/json_values.hpp"
#include "store/formats/recording_builder.hpp"
#include "store/formats/text_source.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune {

namespace {

constexpr std::size_t kSniffSize = 64 * 1024;

std::string beginning(const std::filesystem::path& file) {
  TextSource source(file);
  std::string text(kSniffSize, '\0');
  text.resize(source.read(text.data(), text.size()));
  return text;
}

bool same_parameters(const Problem& problem, const Recording& recording) {
  return std::ranges::all_of(recording.parameters, [&](const Parameter& recorded) {
    return recorded.kind != ParameterKind::code ||
           std::ranges::any_of(problem.parameters, [&](const Parameter& p) { return p.name == recorded.name; });
  });
}

/// Adds restrictions and defaults from the T1 file of a recording: "convolution.T1.json" beside
/// "convolution_A100.json.gz". The longest matching name is used.
void read_t1_beside(Recording& recording) {
  const std::string name = recording.file.filename().string();
  constexpr std::string_view kEnding = ".T1.json";
  std::filesystem::path best;
  std::error_code error;
  const auto folder = recording.file.has_parent_path() ? recording.file.parent_path() : std::filesystem::path(".");
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with(kEnding)) continue;
    const std::string stem = file.substr(0, file.size() - kEnding.size());
    if (stem.empty() || (!name.starts_with(stem) && !recording.name.starts_with(stem))) continue;
    if (file.size() > best.filename().string().size()) best = entry.path();
  }
  if (best.empty()) return;
  try {
    const Problem problem = load_problem(best);
    if (!same_parameters(problem, recording)) {
      recording.warnings.push_back(best.filename().string() +
                                   " lies beside it but has other parameters; it is not used");
      return;
    }
    recording.restrictions = problem.restrictions;
    recording.restrictions_known = true;
    for (Parameter& parameter : recording.parameters) {
      for (const Parameter& described : problem.parameters) {
        if (described.name != parameter.name || !described.default_value) continue;
        const auto& values = parameter.values;
        if (std::ranges::find(values, *described.default_value) != values.end()) {
          parameter.default_value = described.default_value;
        }
      }
    }
  } catch (const UserError& mistake) {
    recording.warnings.push_back(best.filename().string() + " lies beside it and cannot be read: " + mistake.message());
  }
}

}  // namespace

Configuration Recording::configuration(std::size_t row) const {
  Configuration result;
  result.reserve(parameters.size());
  const auto at = position(row);
  for (std::size_t p = 0; p < parameters.size(); ++p) result.push_back(parameters[p].values[at[p]]);
  return result;
}

const RecordedColumn* Recording::column(const std::string& name) const {
  const auto found = std::ranges::find_if(columns, [&](const RecordedColumn& c) { return c.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

bool Recording::is_confirmed(std::size_t row, const ObjectiveSpec& wanted) const {
  const auto found = confirmations.find(row);
  return found != confirmations.end() && found->second.objective == wanted;
}

namespace {

double degrees_of(const RecordedColumn& column, std::size_t row) {
  if (row < column.degrees.size()) return column.degrees[row];
  return row < column.n.size() ? static_cast<double>(column.n[row]) - 1 : 0;
}

}  // namespace

double RecordedColumn::half_width(std::size_t row) const {
  return row < standard_error.size() ? half_width_95(standard_error[row], degrees_of(*this, row)) : 0;
}

Measurement Recording::measurement(std::size_t row) const {
  Measurement result;
  result.status = statuses[row];
  if (const auto message = messages.find(row); message != messages.end()) result.message = message->second;
  if (const auto notes = row_warnings.find(row); notes != row_warnings.end()) result.warnings = notes->second;
  for (const RecordedColumn& column : columns) {
    const double value = column.value[row];
    if (std::isnan(value)) continue;
    const double error = column.standard_error.empty() ? 0.0 : static_cast<double>(column.standard_error[row]);
    if (column.is_metric) {
      result.metrics[column.name] = value;
      if (error != 0) result.metric_errors[column.name] = error;
      if (const double degrees = degrees_of(column, row); error != 0 && degrees > 0)
        result.metric_degrees[column.name] = degrees;
      continue;
    }
    Quantity& quantity = result.quantities[column.name];
    quantity.value = value;
    quantity.standard_error = error;
    quantity.n = column.n.empty() ? 1 : column.n[row];
    quantity.degrees = degrees_of(column, row);
    const Origin from =
        column.origins.empty() ? Origin{"recorded", {}, provenance} : column.origins[column.origin[row]];
    quantity.method = from.method;
    quantity.sensor = from.sensor;
    quantity.provenance = from.provenance;
  }
  const auto cost = [&](const std::vector<float>& list) { return list.empty() ? 0.0 : static_cast<double>(list[row]); };
  result.compile_seconds = cost(compile_seconds);
  result.verify_seconds = cost(verify_seconds);
  result.measure_seconds = cost(run_seconds);
  result.tuner_seconds = cost(framework_seconds);
  result.finished_at = finished_at.empty() ? 0 : finished_at[row];
  return result;
}

std::string Recording::selection() const {
  constexpr double kWhole = 0.9;
  if (static_cast<double>(size()) >= kWhole * static_cast<double>(space)) return {};
  if (space == std::numeric_limits<std::uint64_t>::max())
    return fmt::format("{} configurations of a space of unknown size were measured", size());
  return fmt::format("{} of {} configurations were measured, those that a search chose", size(), space);
}

Recording load_recording(const std::filesystem::path& file, std::int64_t session) {
  if (is_store(file)) return read_stored_session(file, session);
  const std::string text = beginning(file);
  const SourcePlace place{file.string(), 0, 0};
  const std::size_t first = skip_space(text, 0);
  if (first == text.size()) throw UserError("the file is empty", place);
  if (text.find('\0') != std::string::npos) throw UserError("this is not a recording: it is not text", place);
  Recording recording;
  if (text[first] == '{') {
    const bool t4 = top_level_value(text, "results") != kNotFound && top_level_value(text, "cache") == kNotFound;
    if (text.find("\"ConfigurationSpace\"") != std::string::npos) {
      throw UserError("this is a T1 file: a problem, not results", place);
    }
    recording = t4 ? read_t4(file) : read_cache(file);
  } else {
    recording = read_csv(file);
  }
  if (!recording.objective.direction) recording.objective.direction = Direction::minimise;
  read_t1_beside(recording);
  return recording;
}

}  // namespace ergotune
