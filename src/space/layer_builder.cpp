#include "space/layer_builder.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "ergotune/base/error.hpp"
#include "space/choices.hpp"
#include "space/columns.hpp"
#include "space/row_set.hpp"

namespace ergotune {
namespace {

using program::Code;
using program::kNone;
using program::Operation;
using program::OperationId;
using program::Program;

class LayersBuilder {
 public:
  LayersBuilder(const Program& program, const Component& component, const LayerLimits& limits)
      : program_(program), component_(component), limits_(limits), last_use_(program.size(), -1) {
    for (const auto condition : component.conditions) need(condition, program.at(condition).level);
    for (std::size_t m = 0; m < component.members.size(); ++m) {
      const Candidates& candidates = component.candidates[m];
      for (const auto id : {candidates.start, candidates.stop, candidates.step, candidates.set})
        if (id != kNone) need(id, static_cast<std::int32_t>(component.members[m]));
    }
    if (component.failure != kNone)
      need(component.failure, static_cast<std::int32_t>(component.members.back()));
    for (OperationId id = 0; id < static_cast<OperationId>(program.size()); ++id)
      if (last_use_[static_cast<std::size_t>(id)] >= 0 && program.at(id).level >= 0) needed_.push_back(id);
  }

  Layers build() {
    RowSet states(0);
    states.insert(nullptr);
    for (std::size_t m = 0; m < component_.members.size(); ++m) {
      states = level(m, std::move(states));
      if (states.size() == 0) break;
    }
    return std::move(layers_);
  }

 private:
  // Marks what `id` is computed from; `level` is where its value is used.
  void need(OperationId id, std::int32_t level) {
    auto& last = last_use_[static_cast<std::size_t>(id)];
    const bool known = last >= 0;
    last = std::max(last, level);
    if (known) return;
    const Operation& operation = program_.at(id);
    if (operation.code == Code::constant || operation.code == Code::variable ||
        operation.code == Code::position)
      return;
    if (operation.code == Code::opaque) {
      for (const auto input : program_.call(operation.a).inputs) need(input, operation.level);
      return;
    }
    for (const auto operand : {operation.a, operation.b, operation.c})
      if (operand != kNone) need(operand, operation.level);
  }

  bool used_after(OperationId id, std::int32_t level) const {
    return last_use_[static_cast<std::size_t>(id)] > level;
  }

  RowSet level(std::size_t m, RowSet states) {
    const auto p = static_cast<std::int32_t>(component_.members[m]);
    const bool last = m + 1 == component_.members.size();
    const Candidates& candidates = component_.candidates[m];
    // what is computed here, what of the state it reads, and what goes on
    std::vector<OperationId> operations, outputs, inputs;
    std::vector<std::size_t> input_word, pass_word;
    std::vector<bool> read(program_.size(), false);
    const auto reads = [&](OperationId id) {
      if (id != kNone && program_.at(id).level < p) read[static_cast<std::size_t>(id)] = true;
    };
    for (const auto id : needed_) {
      const Operation& operation = program_.at(id);
      if (operation.level != p) continue;
      operations.push_back(id);
      if (used_after(id, p)) outputs.push_back(id);
      if (operation.code == Code::variable || operation.code == Code::position) continue;
      if (operation.code == Code::opaque)
        for (const auto input : program_.call(operation.a).inputs) reads(input);
      else
        for (const auto operand : {operation.a, operation.b, operation.c}) reads(operand);
    }
    for (const auto id : {candidates.start, candidates.stop, candidates.step, candidates.set}) reads(id);
    if (last) reads(component_.failure);
    std::vector<OperationId> next_frontier = outputs;
    for (std::size_t w = 0; w < frontier_.size(); ++w) {
      if (read[static_cast<std::size_t>(frontier_[w])]) {
        inputs.push_back(frontier_[w]);
        input_word.push_back(w);
      }
      if (used_after(frontier_[w], p)) {
        pass_word.push_back(w);
        next_frontier.push_back(frontier_[w]);
      }
    }

    Layer layer;
    // states that this level cannot tell apart share a key
    RowSet keys(inputs.size());
    const bool own_key = inputs.size() == frontier_.size();
    if (!own_key) {
      layer.key.resize(states.size());
      std::vector<std::int64_t> row(inputs.size());
      for (std::size_t s = 0; s < states.size(); ++s) {
        for (std::size_t i = 0; i < row.size(); ++i) row[i] = states.row(s)[input_word[i]];
        layer.key[s] = keys.insert(row.data());
      }
      keys.close();
    }
    const std::size_t key_count = own_key ? states.size() : keys.size();
    const auto key_row = [&](std::size_t key) { return own_key ? states.row(key) : keys.row(key); };
    std::vector<std::int64_t> slot_words;  // outputs of each slot of each key
    choose(m, layer, operations, inputs, outputs, key_count, key_row, slot_words);
    layer.position.shrink_to_fit();
    layer.slot.shrink_to_fit();
    slot_words.shrink_to_fit();

    // the next states
    RowSet next(next_frontier.size());
    const std::size_t words = outputs.size();
    std::vector<std::int64_t> row(next_frontier.size());
    std::vector<std::uint32_t> first_slot(key_count + 1, 0);
    for (std::size_t k = 0; k < key_count; ++k) first_slot[k + 1] = first_slot[k] + layer.slots[k];
    std::vector<std::uint32_t> of_slot;
    if (pass_word.empty()) {  // what follows depends on the key alone
      of_slot.resize(first_slot.back());
      for (std::size_t s = 0; s < of_slot.size(); ++s)
        of_slot[s] = next.insert(slot_words.data() + s * words);
    }
    std::size_t total = 0;
    for (std::size_t s = 0; s < states.size(); ++s) total += layer.slots[layer.key_of(s)];
    if (total > limits_.choices) throw TooManyStates{component_.members[m]};
    layer.next.reserve(total);
    for (std::size_t s = 0; s < states.size(); ++s) {
      const std::uint32_t k = layer.key_of(s);
      if (pass_word.empty()) {
        layer.next.insert(layer.next.end(), of_slot.begin() + first_slot[k],
                          of_slot.begin() + first_slot[k + 1]);
        continue;
      }
      for (std::size_t i = 0; i < pass_word.size(); ++i) row[words + i] = states.row(s)[pass_word[i]];
      for (std::uint32_t slot = first_slot[k]; slot < first_slot[k + 1]; ++slot) {
        std::copy_n(slot_words.data() + slot * words, words, row.data());
        layer.next.push_back(next.insert(row.data()));
      }
      if (next.size() > limits_.states) throw TooManyStates{component_.members[m]};
    }
    next.close();
    frontier_ = std::move(next_frontier);
    layers_.push_back(std::move(layer));
    return next;
  }

  // The values that each key admits, and which of them lead to the same next state.
  template <class KeyRow>
  void choose(std::size_t m, Layer& layer, const std::vector<OperationId>& operations,
              const std::vector<OperationId>& inputs, const std::vector<OperationId>& outputs,
              std::size_t key_count, const KeyRow& key_row, std::vector<std::int64_t>& slot_words) {
    const std::uint32_t parameter = component_.members[m];
    const auto p = static_cast<std::int32_t>(parameter);
    const bool last = m + 1 == component_.members.size();
    const std::size_t domain = program_.parameters()[parameter].values.size();
    const Candidates& candidates = component_.candidates[m];
    Columns columns(program_, inputs, operations);

    struct Leaf {
      std::int64_t* column;
      std::vector<std::int64_t> words;
    };
    std::vector<Leaf> leaves;
    bool ascending = false, all_differ = false;
    for (const auto id : operations) {
      const Code code = program_.at(id).code;
      if (code != Code::variable && code != Code::position) continue;
      leaves.push_back({columns.column(id), value_words(program_, id)});
      all_differ = all_differ || std::find(outputs.begin(), outputs.end(), id) != outputs.end();
      if (code == Code::variable && !program_.at(id).real)
        ascending = std::is_sorted(leaves.back().words.begin(), leaves.back().words.end());
    }
    std::vector<const std::int64_t*> conditions, falling;
    for (const auto id : component_.conditions) {
      if (program_.at(id).level != p) continue;
      conditions.push_back(columns.column(id));
      if (ascending && domain > kShortRun && program::falls_with(program_, id, p))
        falling.push_back(conditions.back());
    }
    const std::int64_t* failure =
        last && component_.failure != kNone ? columns.column(component_.failure) : nullptr;
    std::vector<const std::int64_t*> output_columns;
    for (const auto id : outputs) output_columns.push_back(columns.column(id));
    std::vector<std::int64_t*> input_columns;
    for (const auto id : inputs) input_columns.push_back(columns.column(id));

    SlotFinder slots(layer, slot_words, output_columns, all_differ);
    layer.first_choice.reserve(key_count + 1);
    layer.slots.reserve(key_count);
    CandidateLists lists(program_, candidates, parameter);

    // lanes waiting to be evaluated: runs of one key each
    struct Run {
      std::uint32_t key, begin, end;
    };
    std::vector<Run> runs;
    std::array<std::uint32_t, Columns::kLanes> lane_position;
    std::size_t lanes = 0;
    const auto evaluate = [&] {
      for (const auto& leaf : leaves)
        for (std::size_t i = 0; i < lanes; ++i) leaf.column[i] = leaf.words[lane_position[i]];
      for (const auto& run : runs) {
        const std::int64_t* row = key_row(run.key);
        for (std::size_t k = 0; k < input_columns.size(); ++k)
          std::fill(input_columns[k] + run.begin, input_columns[k] + run.end, row[k]);
      }
      columns.evaluate(lanes);
      std::array<std::int64_t, Columns::kLanes> keep;
      std::fill_n(keep.begin(), lanes, 1);
      for (const auto* condition : conditions)
        for (std::size_t i = 0; i < lanes; ++i) keep[i] &= condition[i];
      for (const auto& run : runs) {
        slots.begin_key(run.key);
        for (std::uint32_t i = run.begin; i < run.end; ++i) {
          if (!keep[i]) continue;
          if (failure != nullptr && failure[i] != 0) throw_failure(m, run.key, lane_position[i], layer);
          slots.add(lane_position[i], i);
        }
      }
      lanes = 0;
      runs.clear();
      if (layer.position.size() > limits_.choices) throw TooManyStates{parameter};
    };

    for (std::size_t k = 0; k < key_count; ++k) {
      const std::span<const std::uint32_t> list = lists.of(inputs, key_row(k));
      const std::size_t count = lists.all() ? domain : list.size();
      const auto position_at = [&](std::size_t i) {
        return lists.all() ? static_cast<std::uint32_t>(i) : list[i];
      };
      const auto enter = [&](std::size_t begin, std::size_t end) {
        runs.push_back({static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(lanes), 0});
        for (std::size_t i = begin; i < end; ++i) lane_position[lanes++] = position_at(i);
        runs.back().end = static_cast<std::uint32_t>(lanes);
      };
      if (count <= kShortRun) {
        if (lanes + count > Columns::kLanes) evaluate();
        enter(0, count);
        continue;
      }
      if (lanes > 0) evaluate();
      const std::size_t step = falling.empty() ? Columns::kLanes : kShortRun;
      for (std::size_t i = 0; i < count; i += step) {
        const std::size_t end = std::min(count, i + step);
        enter(i, end);
        evaluate();
        // values ascend, and what has failed for one fails for all larger ones
        if (std::any_of(falling.begin(), falling.end(),
                        [&](const auto* column) { return column[end - i - 1] == 0; }))
          break;
      }
    }
    if (lanes > 0) evaluate();
    slots.finish(static_cast<std::uint32_t>(key_count));
  }

  static constexpr std::size_t kShortRun = 64;

  // Finds a way to the state (or key) that failed, backwards.
  [[noreturn]] void throw_failure(std::size_t m, std::uint32_t key, std::uint32_t position,
                                  const Layer& layer) const {
    UnevaluableConfiguration failure;
    failure.positions.push_back(position);
    std::size_t state = 0;
    while (layer.key_of(state) != key) ++state;
    for (std::size_t l = m; l-- > 0;) {
      const Layer& before = layers_[l];
      std::size_t next = 0, s = 0;
      for (;; ++s) {
        const std::uint32_t k = before.key_of(s);
        const auto first = before.next.begin() + static_cast<std::ptrdiff_t>(next),
                   end = first + before.slots[k];
        const auto found = std::find(first, end, static_cast<std::uint32_t>(state));
        if (found != end) {
          std::uint32_t c = before.first_choice[k];
          while (before.slot_of(k, c) != static_cast<std::uint32_t>(found - first)) ++c;
          failure.positions.push_back(before.position[c]);
          break;
        }
        next += before.slots[k];
      }
      state = s;
    }
    std::reverse(failure.positions.begin(), failure.positions.end());
    throw failure;
  }

  const Program& program_;
  const Component& component_;
  LayerLimits limits_;
  std::vector<std::int32_t> last_use_;  // the last level that reads an operation; -1: not needed
  std::vector<OperationId> needed_;
  std::vector<OperationId> frontier_;  // the words of a state
  Layers layers_;
};

}  // namespace

Layers build_layers(const program::Program& program, const Component& component, const LayerLimits& limits) {
  return LayersBuilder(program, component, limits).build();
}

}  // namespace ergotune
