#include "store/formats/recording_builder.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ergotune {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
// Up to this many values, a search from the last hit on is faster than hashing.
constexpr std::size_t kShortList = 64;

template <class T>
void move_to_end(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
  std::vector<T>().swap(from);
}

}  // namespace

ValueIndex::ValueIndex(const std::vector<Value>& values) : values_(values) {
  all_integers_ = std::ranges::all_of(values, [](const Value& v) { return v.is_integer(); });
  if (!all_integers_) return;
  if (values.size() <= kShortList) {
    for (const Value& value : values) integers_.push_back(value.as_integer());
  } else {
    std::uint32_t at = 0;
    for (const Value& value : values) by_integer_.emplace(value.as_integer(), at++);
  }
}

std::uint32_t ValueIndex::find(std::int64_t value) {
  if (!all_integers_) return find(Value(value));
  if (!by_integer_.empty()) {
    const auto found = by_integer_.find(value);
    return found == by_integer_.end() ? npos : found->second;
  }
  // Recorded spaces are enumerated in order: the value is usually the last one or the next.
  const auto size = static_cast<std::uint32_t>(integers_.size());
  for (std::uint32_t step = 0; step < size; ++step) {
    std::uint32_t i = last_ + step;
    if (i >= size) i -= size;
    if (integers_[i] == value) return last_ = i;
  }
  return npos;
}

std::uint32_t ValueIndex::find(const Value& value) {
  const auto found = std::ranges::find(values_, value);
  return found == values_.end() ? npos : static_cast<std::uint32_t>(found - values_.begin());
}

std::size_t RecordingBuilder::column(std::string_view name, bool is_metric) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].name == name) return i;
  }
  Column column;
  column.name = std::string(name);
  column.is_metric = is_metric;
  column.value.assign(rows(), kNone);
  column.standard_error.assign(rows(), 0.0f);
  column.n.assign(rows(), 1);
  columns_.push_back(std::move(column));
  return columns_.size() - 1;
}

void RecordingBuilder::set(std::size_t index, double value, double standard_error, std::uint32_t n) {
  Column& column = columns_[index];
  column.current = value;
  column.has_value = true;
  if (n == 0) return;
  column.current_error = standard_error;
  column.current_n = n;
}

void RecordingBuilder::set_degrees(std::size_t index, double degrees) {
  Column& column = columns_[index];
  column.current_degrees = degrees;
  column.has_degrees = true;
}

void RecordingBuilder::Column::fill_degrees() {
  for (std::size_t row = degrees.size(); has_degrees && row < n.size(); ++row)
    degrees.push_back(static_cast<float>(n[row]) - 1);
}

void RecordingBuilder::set_origin(std::size_t index, const Origin& origin) {
  Column& column = columns_[index];
  const auto found = std::ranges::find(column.origins, origin);
  column.current_origin = static_cast<std::uint32_t>(found - column.origins.begin());
  if (found == column.origins.end()) column.origins.push_back(origin);
  column.origin.resize(rows(), 0);
}

void RecordingBuilder::set(const Measurement& measurement) {
  for (const auto& [name, quantity] : measurement.quantities) {
    const std::size_t at = column(name, false);
    set_origin(at, {quantity.method, quantity.sensor, quantity.provenance});
    set(at, quantity.value, quantity.standard_error, static_cast<std::uint32_t>(std::max<std::int64_t>(quantity.n, 1)));
    set_degrees(at, quantity.degrees);
  }
  for (const auto& [name, value] : measurement.metrics) {
    const std::size_t at = column(name, true);
    set(at, value, measurement.standard_error(name), 1);
    set_degrees(at, measurement.degrees(name));
  }
}

void RecordingBuilder::set_statistics(std::size_t index, double mean, double standard_error, std::uint32_t n) {
  Column& column = columns_[index];
  column.current_error = standard_error;
  column.current_n = n;
  column.has_mean = true;
  if (!column.has_value) column.current = mean;
}

void RecordingBuilder::set_error(std::size_t index, double standard_error, std::uint32_t n) {
  columns_[index].current_error = standard_error;
  columns_[index].current_n = n;
}

void RecordingBuilder::finish_row(const std::uint32_t* positions, Status status, const RowCosts& costs,
                                  double finished_at) {
  for (Column& column : columns_) {
    const bool there = column.has_value || column.has_mean;
    column.value.push_back(there ? column.current : kNone);
    column.standard_error.push_back(static_cast<float>(column.current_error));
    column.fill_degrees();  // of the rows before
    column.n.push_back(std::max(column.current_n, 1u));
    if (column.current_degrees) column.degrees.push_back(static_cast<float>(*column.current_degrees));
    if (!column.origins.empty()) column.origin.push_back(column.current_origin);
  }
  positions_.insert(positions_.end(), positions, positions + dimensions_);
  statuses_.push_back(status);
  compile_.push_back(static_cast<float>(costs.compile));
  verify_.push_back(static_cast<float>(costs.verify));
  run_.push_back(static_cast<float>(costs.run));
  framework_.push_back(static_cast<float>(costs.framework));
  any_costs_ = any_costs_ || costs.any;
  finished_at_.push_back(finished_at);
  if (!message_.empty()) messages_[rows() - 1] = std::move(message_);
  drop_row();
}

void RecordingBuilder::drop_row() {
  message_.clear();
  for (Column& column : columns_) {
    column.current = column.current_error = 0;
    column.current_degrees.reset();
    column.current_n = column.current_origin = 0;
    column.has_value = column.has_mean = false;
  }
}

void RecordingBuilder::append(RecordingBuilder& other) {
  for (auto& [row, message] : other.messages_) messages_[rows() + row] = std::move(message);
  other.messages_.clear();
  for (Column& column : other.columns_) {
    Column& mine = columns_[this->column(column.name, column.is_metric)];
    if (column.has_degrees || mine.has_degrees) {
      column.has_degrees = mine.has_degrees = true;
      column.fill_degrees();
      mine.fill_degrees();
      move_to_end(mine.degrees, column.degrees);
    }
    move_to_end(mine.value, column.value);
    move_to_end(mine.standard_error, column.standard_error);
    move_to_end(mine.n, column.n);
  }
  move_to_end(positions_, other.positions_);
  move_to_end(statuses_, other.statuses_);
  move_to_end(compile_, other.compile_);
  move_to_end(verify_, other.verify_);
  move_to_end(run_, other.run_);
  move_to_end(framework_, other.framework_);
  move_to_end(finished_at_, other.finished_at_);
  any_costs_ = any_costs_ || other.any_costs_;
  for (Column& column : columns_) {  // columns that the other builder lacks
    column.value.resize(rows(), kNone);
    column.standard_error.resize(rows(), 0.0f);
    column.n.resize(rows(), 1);
  }
}

void RecordingBuilder::map_positions(const std::vector<std::vector<std::uint32_t>>& extra,
                                     const std::vector<Parameter>& parameters) {
  for (std::size_t i = 0; i < positions_.size(); ++i) {
    const std::size_t p = i % dimensions_;
    const auto known = static_cast<std::uint32_t>(parameters[p].values.size());
    if (positions_[i] >= known) positions_[i] = extra[p][positions_[i] - known];
  }
}

void RecordingBuilder::finish(Recording& recording) {
  for (Column& column : columns_) {
    if (std::ranges::all_of(column.value, [](double x) { return std::isnan(x); })) continue;
    RecordedColumn result;
    result.name = std::move(column.name);
    result.is_metric = column.is_metric;
    result.value = std::move(column.value);
    const auto& error = column.standard_error;
    if (std::ranges::any_of(error, [](float x) { return x != 0; })) {
      result.standard_error = std::move(column.standard_error);
    }
    if (std::ranges::any_of(column.n, [](std::uint32_t n) { return n != 1; })) {
      result.n = std::move(column.n);
    }
    column.fill_degrees();
    result.degrees = std::move(column.degrees);
    result.origins = std::move(column.origins);
    result.origin = std::move(column.origin);
    recording.columns.push_back(std::move(result));
  }
  recording.messages.merge(messages_);
  recording.positions = std::move(positions_);
  recording.statuses = std::move(statuses_);
  if (std::ranges::any_of(finished_at_, [](double x) { return x > 0; }))
    recording.finished_at = std::move(finished_at_);
  if (!any_costs_) return;
  recording.compile_seconds = std::move(compile_);
  recording.verify_seconds = std::move(verify_);
  recording.run_seconds = std::move(run_);
  recording.framework_seconds = std::move(framework_);
}

Provenance provenance_in_file(std::string_view text) {
  for (const Provenance provenance : {Provenance::simulated, Provenance::modelled})
    if (text == to_string(provenance)) return provenance;
  return Provenance::replayed;
}

const std::uint32_t* DistinctValues::positions(const Configuration& configuration) {
  by_value_.resize(lists_.size());
  for (std::size_t p = 0; p < lists_.size(); ++p) {
    const auto [found, added] = by_value_[p].emplace(configuration[p], static_cast<std::uint32_t>(lists_[p].size()));
    if (added) lists_[p].push_back(configuration[p]);
    positions_[p] = found->second;
  }
  return positions_.data();
}

void DistinctValues::finish(Recording& recording) const {
  const std::size_t dimensions = lists_.size();
  for (std::size_t p = 0; p < dimensions; ++p) {
    auto& values = recording.parameters[p].values;
    const auto known = static_cast<std::ptrdiff_t>(values.size());
    for (const Value& value : lists_[p]) {
      if (std::find(values.begin(), values.begin() + known, value) == values.begin() + known) values.push_back(value);
    }
    std::sort(values.begin() + known, values.end());
    std::vector<std::uint32_t> position;
    for (const Value& value : lists_[p]) {
      position.push_back(static_cast<std::uint32_t>(std::ranges::find(values, value) - values.begin()));
    }
    for (std::size_t row = 0; row < recording.size(); ++row) {
      std::uint32_t& at = recording.positions[row * dimensions + p];
      at = position[at];
    }
  }
}

}  // namespace ergotune
