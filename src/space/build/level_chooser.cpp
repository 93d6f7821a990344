#include "space/build/level_chooser.hpp"

#include <algorithm>

namespace ergotune {

using program::Code;
using program::kNone;
using program::OperationId;
using program::Program;

LevelChooser::LevelChooser(const Program& program, const Component& component, const LevelPlan& plan,
                           const LayerLimits& limits, Layer& layer, std::vector<std::int64_t>& slot_words)
    : plan_(plan),
      limits_(limits),
      layer_(layer),
      domain_(program.parameters()[plan.parameter].values.size()),
      columns_(program, plan.inputs, plan.operations),
      lists_(program, component.candidates[plan.member], plan.parameter),
      slots_(layer, slot_words, columns_of(plan.outputs)) {
  find_leaves(program);
  find_conditions(program, component);
  if (plan.last && component.failure != kNone) failure_ = columns_.column(component.failure);
  for (const auto id : plan.inputs) input_columns_.push_back(columns_.column(id));
  if (all_differ_) slots_.all_differ();
}

std::vector<const std::int64_t*> LevelChooser::columns_of(const std::vector<OperationId>& ids) {
  std::vector<const std::int64_t*> columns;
  for (const auto id : ids) columns.push_back(columns_.column(id));
  return columns;
}

void LevelChooser::find_leaves(const Program& program) {
  for (const auto id : plan_.operations) {
    const Code code = program.at(id).code;
    if (code != Code::variable && code != Code::position) continue;
    leaves_.push_back({columns_.column(id), value_description(program, id)});
    const auto& outputs = plan_.outputs;
    all_differ_ = all_differ_ || std::ranges::find(outputs, id) != outputs.end();
    if (code == Code::variable && !program.at(id).real)
      ascending_ = std::is_sorted(leaves_.back().words.begin(), leaves_.back().words.end());
  }
}

void LevelChooser::find_conditions(const Program& program, const Component& component) {
  const auto level = static_cast<std::int32_t>(plan_.parameter);
  for (const auto id : component.conditions) {
    if (program.at(id).level != level) continue;
    conditions_.push_back(columns_.column(id));
    if (ascending_ && domain_ > kShortRun && program::falls_with(program, id, level))
      falling_.push_back(conditions_.back());
  }
}

void LevelChooser::choose(const RowSet& keys, std::size_t count) {
  layer_.first_choice.reserve(count + 1);
  layer_.slots.reserve(count);
  for (std::size_t k = 0; k < count; ++k) {
    const auto key = static_cast<std::uint32_t>(k);
    const std::span<const std::uint32_t> list = lists_.of(plan_.inputs, keys.row(k));
    const std::size_t candidates = lists_.all() ? domain_ : list.size();
    if (candidates > kShortRun) {
      choose_from_many(key, candidates, list, keys);
      continue;
    }
    if (lanes_ + candidates > Columns::kLanes) evaluate(keys);
    enter(key, 0, candidates, list);
  }
  if (lanes_ > 0) evaluate(keys);
  slots_.finish(static_cast<std::uint32_t>(count));
}

void LevelChooser::choose_from_many(std::uint32_t key, std::size_t count, const std::span<const std::uint32_t>& list,
                                    const RowSet& keys) {
  if (lanes_ > 0) evaluate(keys);
  const std::size_t step = falling_.empty() ? Columns::kLanes : kShortRun;
  for (std::size_t i = 0; i < count; i += step) {
    const std::size_t end = std::min(count, i + step);
    enter(key, i, end, list);
    evaluate(keys);
    // values ascend, and a condition that failed for one fails for all larger ones
    if (std::ranges::any_of(falling_, [&](const auto* column) { return column[end - i - 1] == 0; })) break;
  }
}

void LevelChooser::enter(std::uint32_t key, std::size_t begin, std::size_t end,
                         const std::span<const std::uint32_t>& list) {
  const bool all = lists_.all();
  std::size_t lane = lanes_;
  runs_.push_back({key, static_cast<std::uint32_t>(lane), static_cast<std::uint32_t>(lane + end - begin)});
  for (std::size_t i = begin; i < end; ++i) lane_position_[lane++] = all ? static_cast<std::uint32_t>(i) : list[i];
  lanes_ = lane;
}

void LevelChooser::evaluate(const RowSet& keys) {
  const std::size_t lanes = lanes_;  // a local copy, which writes to columns cannot alias
  for (const auto& leaf : leaves_)
    for (std::size_t i = 0; i < lanes; ++i) leaf.column[i] = leaf.words[lane_position_[i]];
  for (const auto& run : runs_) {
    const std::int64_t* row = keys.row(run.key);
    for (std::size_t k = 0; k < input_columns_.size(); ++k)
      std::fill(input_columns_[k] + run.begin, input_columns_[k] + run.end, row[k]);
  }
  columns_.evaluate(lanes);
  std::array<std::int64_t, Columns::kLanes> keep;
  std::fill_n(keep.begin(), lanes, 1);
  for (const auto* condition : conditions_)
    for (std::size_t i = 0; i < lanes; ++i) keep[i] &= condition[i];
  for (const auto& run : runs_) {
    slots_.begin_key(run.key);
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      if (!keep[i]) continue;
      if (failure_ != nullptr && failure_[i] != 0) throw UnevaluableChoice{run.key, lane_position_[i]};
      slots_.add(lane_position_[i], i);
    }
  }
  lanes_ = 0;
  runs_.clear();
  if (layer_.position.size() > limits_.choices) throw TooManyStates{plan_.parameter};
}

}  // namespace ergotune
