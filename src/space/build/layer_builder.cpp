#include "space/build/layer_builder.hpp"

#include <algorithm>

#include "space/build/level_chooser.hpp"

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
    if (component.failure != kNone) need(component.failure, static_cast<std::int32_t>(component.members.back()));
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
  // Marks the operands of `id`; `level` is the level at which its value is used.
  void need(OperationId id, std::int32_t level) {
    auto& last = last_use_[static_cast<std::size_t>(id)];
    const bool known = last >= 0;
    last = std::max(last, level);
    if (known) return;
    const Operation& operation = program_.at(id);
    if (operation.code == Code::constant || operation.code == Code::variable || operation.code == Code::position)
      return;
    if (operation.code == Code::opaque) {
      for (const auto input : program_.call(operation.a).inputs) need(input, operation.level);
      return;
    }
    for (const auto operand : {operation.a, operation.b, operation.c})
      if (operand != kNone) need(operand, operation.level);
  }

  bool used_after(OperationId id, std::int32_t level) const { return last_use_[static_cast<std::size_t>(id)] > level; }

  RowSet level(std::size_t m, RowSet states) {
    const LevelPlan plan = plan_level(m);
    Layer layer;
    // states that this level cannot distinguish share a key
    RowSet keys(plan.inputs.size());
    const bool own_key = plan.inputs.size() == frontier_.size();
    if (!own_key) share_keys(plan, states, layer, keys);
    const std::size_t key_count = own_key ? states.size() : keys.size();
    std::vector<std::int64_t> slot_words;  // outputs by key and slot
    try {
      LevelChooser(program_, component_, plan, limits_, layer, slot_words).choose(own_key ? states : keys, key_count);
    } catch (const UnevaluableChoice& choice) {
      throw_failure(m, choice.key, choice.position, layer);
    }
    layer.position.shrink_to_fit();
    layer.slot.shrink_to_fit();
    slot_words.shrink_to_fit();
    RowSet next = next_states(plan, states, layer, key_count, slot_words);
    std::vector<OperationId> frontier = plan.outputs;
    for (const std::size_t word : plan.pass_word) frontier.push_back(frontier_[word]);
    frontier_ = std::move(frontier);
    layers_.push_back(std::move(layer));
    return next;
  }

  // Determines what is computed at a level, what it reads of the state, and what it passes on.
  LevelPlan plan_level(std::size_t m) const {
    LevelPlan plan;
    plan.member = m;
    plan.parameter = component_.members[m];
    plan.last = m + 1 == component_.members.size();
    const auto p = static_cast<std::int32_t>(plan.parameter);
    std::vector<bool> read(program_.size(), false);
    const auto reads = [&](OperationId id) {
      if (id != kNone && program_.at(id).level < p) read[static_cast<std::size_t>(id)] = true;
    };
    for (const auto id : needed_) {
      const Operation& operation = program_.at(id);
      if (operation.level != p) continue;
      plan.operations.push_back(id);
      if (used_after(id, p)) plan.outputs.push_back(id);
      if (operation.code == Code::variable || operation.code == Code::position) continue;
      if (operation.code == Code::opaque)
        for (const auto input : program_.call(operation.a).inputs) reads(input);
      else
        for (const auto operand : {operation.a, operation.b, operation.c}) reads(operand);
    }
    const Candidates& candidates = component_.candidates[m];
    for (const auto id : {candidates.start, candidates.stop, candidates.step, candidates.set}) reads(id);
    if (plan.last) reads(component_.failure);
    for (std::size_t w = 0; w < frontier_.size(); ++w) {
      if (read[static_cast<std::size_t>(frontier_[w])]) {
        plan.inputs.push_back(frontier_[w]);
        plan.input_word.push_back(w);
      }
      if (used_after(frontier_[w], p)) plan.pass_word.push_back(w);
    }
    return plan;
  }

  static void share_keys(const LevelPlan& plan, const RowSet& states, Layer& layer, RowSet& keys) {
    layer.key.resize(states.size());
    std::vector<std::int64_t> row(plan.inputs.size());
    for (std::size_t s = 0; s < states.size(); ++s) {
      for (std::size_t i = 0; i < row.size(); ++i) row[i] = states.row(s)[plan.input_word[i]];
      layer.key[s] = keys.insert(row.data());
    }
    keys.close();
  }

  // Returns the states to which the slots lead: a slot's outputs, and the words that this level passes on.
  RowSet next_states(const LevelPlan& plan, const RowSet& states, Layer& layer, std::size_t key_count,
                     const std::vector<std::int64_t>& slot_words) const {
    const std::size_t words = plan.outputs.size();
    const auto& pass_word = plan.pass_word;
    RowSet next(words + pass_word.size());
    std::vector<std::int64_t> row(words + pass_word.size());
    std::vector<std::uint32_t> first_slot(key_count + 1, 0);
    for (std::size_t k = 0; k < key_count; ++k) first_slot[k + 1] = first_slot[k] + layer.slots[k];
    std::vector<std::uint32_t> of_slot;
    if (pass_word.empty()) {  // the next states depend on the key alone
      of_slot.resize(first_slot.back());
      for (std::size_t s = 0; s < of_slot.size(); ++s) of_slot[s] = next.insert(slot_words.data() + s * words);
    }
    std::size_t total = 0;
    for (std::size_t s = 0; s < states.size(); ++s) total += layer.slots[layer.key_of(s)];
    if (total > limits_.choices) throw TooManyStates{plan.parameter};
    layer.next.reserve(total);
    for (std::size_t s = 0; s < states.size(); ++s) {
      const std::uint32_t k = layer.key_of(s);
      if (pass_word.empty()) {
        layer.next.insert(layer.next.end(), of_slot.begin() + first_slot[k], of_slot.begin() + first_slot[k + 1]);
        continue;
      }
      for (std::size_t i = 0; i < pass_word.size(); ++i) row[words + i] = states.row(s)[pass_word[i]];
      for (std::uint32_t slot = first_slot[k]; slot < first_slot[k + 1]; ++slot) {
        std::copy_n(slot_words.data() + slot * words, words, row.data());
        layer.next.push_back(next.insert(row.data()));
      }
      if (next.size() > limits_.states) throw TooManyStates{plan.parameter};
    }
    next.close();
    return next;
  }

  // Finds a path to the state (or key) that failed, backwards.
  [[noreturn]] void throw_failure(std::size_t m, std::uint32_t key, std::uint32_t position, const Layer& layer) const {
    UnevaluableConfiguration failure;
    failure.positions.push_back(position);
    std::size_t state = 0;
    while (layer.key_of(state) != key) ++state;
    for (std::size_t l = m; l-- > 0;) {
      const Layer& before = layers_[l];
      std::size_t next = 0, s = 0;
      for (;; ++s) {
        const std::uint32_t k = before.key_of(s);
        const auto first = before.next.begin() + static_cast<std::ptrdiff_t>(next), end = first + before.slots[k];
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
    std::ranges::reverse(failure.positions);
    throw failure;
  }

  const Program& program_;
  const Component& component_;
  LayerLimits limits_;
  std::vector<std::int32_t> last_use_;  // last level that reads an operation; -1: not needed
  std::vector<OperationId> needed_;
  std::vector<OperationId> frontier_;  // words of a state
  Layers layers_;
};

}  // namespace

Layers build_layers(const program::Program& program, const Component& component, const LayerLimits& limits) {
  return LayersBuilder(program, component, limits).build();
}

}  // namespace ergotune
