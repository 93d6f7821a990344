#include "space/layer_builder.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "ergotune/base/error.hpp"
#include "space/columns.hpp"

namespace ergotune {
namespace {

using program::Code;
using program::kNone;
using program::Operation;
using program::OperationId;
using program::Program;

constexpr std::uint32_t kFree = std::numeric_limits<std::uint32_t>::max();

std::uint64_t hash_row(const std::int64_t* row, std::size_t words) {
  std::uint64_t hash = 0x243f6a8885a308d3ull;
  for (std::size_t w = 0; w < words; ++w) {
    hash = (hash ^ static_cast<std::uint64_t>(row[w])) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  }
  return hash;
}

/// Rows of words, each kept once and numbered in order of arrival. Kept in blocks: a growing vector would
/// hold all rows twice each time it moves.
class RowSet {
 public:
  explicit RowSet(std::size_t words) : words_(words) { slots_.assign(64, kFree); }

  std::uint32_t insert(const std::int64_t* row) {
    if (words_ == 0) {
      count_ = 1;
      return 0;
    }
    std::size_t at = hash_row(row, words_) & (slots_.size() - 1);
    for (; slots_[at] != kFree; at = (at + 1) & (slots_.size() - 1)) {
      const std::int64_t* other = this->row(slots_[at]);
      bool same = true;
      for (std::size_t w = 0; w < words_; ++w) same = same && other[w] == row[w];
      if (same) return slots_[at];
    }
    const auto number = static_cast<std::uint32_t>(count_++);
    slots_[at] = number;
    auto& block = number < kFirstBlock ? first_ : block_for(number);
    for (std::size_t w = 0; w < words_; ++w) block.push_back(row[w]);
    if (2 * count_ > slots_.size()) grow();
    return number;
  }

  std::size_t size() const { return count_; }
  const std::int64_t* row(std::size_t number) const {
    if (number < kFirstBlock) return first_.data() + number * words_;
    return blocks_[number / kBlock].data() + number % kBlock * words_;
  }
  /// Frees what is only needed to insert.
  void close() { std::vector<std::uint32_t>().swap(slots_); }

 private:
  static constexpr std::size_t kBlock = 1 << 14;
  static constexpr std::size_t kFirstBlock =
      kBlock;  // small sets, by far the most, live in one growing vector

  std::vector<std::int64_t>& block_for(std::size_t number) {
    const std::size_t wanted = number / kBlock;
    while (blocks_.size() <= wanted) {
      blocks_.emplace_back();
      if (blocks_.size() > 1) blocks_.back().reserve(kBlock * words_);
    }
    return blocks_[wanted];
  }

  void grow() {
    const std::size_t size = (slots_.size() < 4096 ? 4 : 2) * slots_.size();
    close();  // before the new table, not after it
    slots_.assign(size, kFree);
    for (std::uint32_t number = 0; number < count_; ++number) {
      std::size_t at = hash_row(row(number), words_) & (slots_.size() - 1);
      while (slots_[at] != kFree) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = number;
    }
  }

  std::size_t words_;
  std::size_t count_ = 0;
  std::vector<std::int64_t> first_;
  std::vector<std::vector<std::int64_t>> blocks_;  // of rows kBlock and later; the first stays empty
  std::vector<std::uint32_t> slots_;
};

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

  /// Collects the choices of keys, which arrive in order.
  class SlotFinder {
   public:
    SlotFinder(Layer& layer, std::vector<std::int64_t>& slot_words, std::vector<const std::int64_t*> outputs,
               bool all_differ)
        : layer_(layer),
          slot_words_(slot_words),
          outputs_(std::move(outputs)),
          all_differ_(all_differ),
          table_(64, 0),
          stamp_(64, 0) {}

    void begin_key(std::uint32_t key) {
      if (started_ == key + 1) return;  // a further run of the same key
      finish_keys(key);
      started_ = key + 1;
      layer_.first_choice.push_back(static_cast<std::uint32_t>(layer_.position.size()));
      slots_ = 0;
      first_word_ = slot_words_.size();
      ++now_;
    }

    void add(std::uint32_t position, std::size_t lane) {
      layer_.position.push_back(position);
      const std::uint32_t slot = slot_of(lane);
      if (!all_differ_ || outputs_.empty()) layer_.slot.push_back(slot);
    }

    void finish(std::uint32_t keys) {
      finish_keys(keys);
      layer_.first_choice.push_back(static_cast<std::uint32_t>(layer_.position.size()));
    }

   private:
    // Closes the key under way, and those before `key` that have no candidates.
    void finish_keys(std::uint32_t key) {
      if (started_ > layer_.slots.size()) layer_.slots.push_back(slots_);
      while (layer_.slots.size() < key) {
        layer_.first_choice.push_back(static_cast<std::uint32_t>(layer_.position.size()));
        layer_.slots.push_back(0);
        started_ = static_cast<std::uint32_t>(layer_.slots.size());
      }
    }

    std::uint32_t slot_of(std::size_t lane) {
      const std::size_t words = outputs_.size();
      if (words == 0) {
        slots_ = 1;
        return 0;
      }
      if (all_differ_) {
        append(lane);
        return slots_++;
      }
      std::uint64_t hash = 0;
      for (const auto* column : outputs_) {
        hash = (hash ^ static_cast<std::uint64_t>(column[lane])) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 32;
      }
      std::size_t at = hash & (table_.size() - 1);
      for (; stamp_[at] == now_; at = (at + 1) & (table_.size() - 1)) {
        const std::int64_t* other = slot_words_.data() + first_word_ + table_[at] * words;
        bool same = true;
        for (std::size_t w = 0; w < words; ++w) same = same && other[w] == outputs_[w][lane];
        if (same) return table_[at];
      }
      table_[at] = slots_;
      stamp_[at] = now_;
      append(lane);
      ++slots_;
      if (2 * slots_ > table_.size()) grow();
      return slots_ - 1;
    }

    void append(std::size_t lane) {
      for (const auto* column : outputs_) slot_words_.push_back(column[lane]);
    }

    void grow() {
      const std::size_t words = outputs_.size();
      table_.assign(2 * table_.size(), 0);
      stamp_.assign(table_.size(), 0);
      now_ = 1;
      for (std::uint32_t s = 0; s < slots_; ++s) {
        std::uint64_t hash = 0;
        for (std::size_t w = 0; w < words; ++w) {
          hash = (hash ^ static_cast<std::uint64_t>(slot_words_[first_word_ + s * words + w])) *
                 0x9e3779b97f4a7c15ull;
          hash ^= hash >> 32;
        }
        std::size_t at = hash & (table_.size() - 1);
        while (stamp_[at] == now_) at = (at + 1) & (table_.size() - 1);
        table_[at] = s;
        stamp_[at] = now_;
      }
    }

    Layer& layer_;
    std::vector<std::int64_t>& slot_words_;
    std::vector<const std::int64_t*> outputs_;
    bool all_differ_;
    std::uint32_t started_ = 0;  // key under way, plus one
    std::uint32_t slots_ = 0;
    std::size_t first_word_ = 0;
    std::vector<std::uint32_t> table_;
    std::vector<std::uint32_t> stamp_;
    std::uint32_t now_ = 0;
  };

  /// Positions that a range or a set admits for a key.
  class CandidateLists {
   public:
    CandidateLists(const Program& program, const Candidates& candidates, std::uint32_t parameter)
        : program_(program), candidates_(candidates), parameter_(program.parameters()[parameter]) {
      if (candidates.start == kNone) return;
      const auto& values = parameter_.values;
      first_ = values.front().as_integer();
      // ranges give whole numbers in a span that is small enough to index
      index_.assign(static_cast<std::size_t>(values.back().as_integer() - first_) + 1, kFree);
      for (std::uint32_t v = 0; v < values.size(); ++v)
        index_[static_cast<std::size_t>(values[v].as_integer() - first_)] = v;
    }
    bool all() const { return candidates_.start == kNone && candidates_.set == kNone; }

    std::span<const std::uint32_t> of(const std::vector<OperationId>& inputs, const std::int64_t* row) {
      if (all()) return {};
      const auto word = [&](OperationId id) {
        if (program_.is_constant(id)) return program_.at(id).word;
        return row[std::find(inputs.begin(), inputs.end(), id) - inputs.begin()];
      };
      if (candidates_.set != kNone)
        return (*candidates_.sets)[static_cast<std::size_t>(word(candidates_.set))];
      const std::int64_t start = word(candidates_.start), stop = word(candidates_.stop),
                         step = word(candidates_.step);
      if (step == 0)
        throw UserError("the step of the range of parameter \"" + parameter_.name + "\" is 0",
                        parameter_.place);
      list_.clear();
      for (std::int64_t v = start; step > 0 ? v < stop : v > stop; v += step) {
        const std::int64_t at = v - first_;
        if (at >= 0 && at < static_cast<std::int64_t>(index_.size()) &&
            index_[static_cast<std::size_t>(at)] != kFree)
          list_.push_back(index_[static_cast<std::size_t>(at)]);
      }
      if (step < 0) std::reverse(list_.begin(), list_.end());
      return list_;
    }

   private:
    const Program& program_;
    const Candidates& candidates_;
    const Parameter& parameter_;
    std::int64_t first_ = 0;
    std::vector<std::uint32_t> index_, list_;
  };

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
