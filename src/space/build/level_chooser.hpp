// Determines the values that each key of a level admits, by evaluating columns that hold as many keys as fit.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "ergotune/error.hpp"
#include "space/build/layer_builder.hpp"
#include "space/expression/columns.hpp"

namespace ergotune {

inline constexpr std::uint32_t kFree = std::numeric_limits<std::uint32_t>::max();

inline std::uint64_t hash_row(const std::int64_t* row, std::size_t words) {
  std::uint64_t hash = 0x243f6a8885a308d3ull;
  for (std::size_t w = 0; w < words; ++w) {
    hash = (hash ^ static_cast<std::uint64_t>(row[w])) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  }
  return hash;
}

/// A set of rows, numbered in order of insertion. Stored in blocks, since a growing vector would temporarily need twice
/// the memory.
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
  /// Frees memory that is only needed for insertion.
  void close() { std::vector<std::uint32_t>().swap(slots_); }

 private:
  static constexpr std::size_t kBlock = 1 << 14;
  static constexpr std::size_t kFirstBlock = kBlock;  // most sets are small and use one growing vector

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
    close();  // before the new table is allocated
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
  std::vector<std::vector<std::int64_t>> blocks_;  // for rows from kBlock on; the first one stays empty
  std::vector<std::uint32_t> slots_;
};

/// Collects the choices of keys, which arrive in order.
class SlotFinder {
 public:
  SlotFinder(Layer& layer, std::vector<std::int64_t>& slot_words, std::vector<const std::int64_t*> outputs)
      : layer_(layer), slot_words_(slot_words), outputs_(std::move(outputs)), table_(64, 0), stamp_(64, 0) {}

  /// No two choices of a key have equal outputs, so that comparisons are unnecessary.
  void all_differ() { all_differ_ = true; }

  void begin_key(std::uint32_t key) {
    if (started_ == key + 1) return;  // another run of the same key
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
  // Closes the current key, and keys before `key` that have no candidates.
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
        hash = (hash ^ static_cast<std::uint64_t>(slot_words_[first_word_ + s * words + w])) * 0x9e3779b97f4a7c15ull;
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
  bool all_differ_ = false;
  std::uint32_t started_ = 0;  // current key plus one
  std::uint32_t slots_ = 0;
  std::size_t first_word_ = 0;
  std::vector<std::uint32_t> table_;
  std::vector<std::uint32_t> stamp_;
  std::uint32_t now_ = 0;
};

/// Returns the positions that a range or a set admits for a key.
class CandidateLists {
 public:
  CandidateLists(const program::Program& program, const Candidates& candidates, std::uint32_t parameter)
      : program_(program), candidates_(candidates), parameter_(program.parameters()[parameter]) {
    if (candidates.start == program::kNone) return;
    const auto& values = parameter_.values;
    first_ = values.front().as_integer();
    // ranges yield integers in a span that is small enough for an index
    index_.assign(static_cast<std::size_t>(values.back().as_integer() - first_) + 1, kFree);
    for (std::uint32_t v = 0; v < values.size(); ++v)
      index_[static_cast<std::size_t>(values[v].as_integer() - first_)] = v;
  }
  bool all() const { return candidates_.start == program::kNone && candidates_.set == program::kNone; }

  std::span<const std::uint32_t> of(const std::vector<program::OperationId>& inputs, const std::int64_t* row) {
    if (all()) return {};
    const auto word = [&](program::OperationId id) {
      if (program_.is_constant(id)) return program_.at(id).word;
      return row[std::ranges::find(inputs, id) - inputs.begin()];
    };
    if (candidates_.set != program::kNone) return (*candidates_.sets)[static_cast<std::size_t>(word(candidates_.set))];
    const std::int64_t start = word(candidates_.start), stop = word(candidates_.stop), step = word(candidates_.step);
    if (step == 0)
      throw UserError("the step of the range of parameter \"" + parameter_.name + "\" is 0", parameter_.place);
    list_.clear();
    for (std::int64_t v = start; step > 0 ? v < stop : v > stop; v += step) {
      const std::int64_t at = v - first_;
      if (at >= 0 && at < static_cast<std::int64_t>(index_.size()) && index_[static_cast<std::size_t>(at)] != kFree)
        list_.push_back(index_[static_cast<std::size_t>(at)]);
    }
    if (step < 0) std::ranges::reverse(list_);
    return list_;
  }

 private:
  const program::Program& program_;
  const Candidates& candidates_;
  const Parameter& parameter_;
  std::int64_t first_ = 0;
  std::vector<std::uint32_t> index_, list_;
};

/// The operations and reads of one level, determined before values are tried.
struct LevelPlan {
  std::size_t member = 0;  ///< index in the component
  std::uint32_t parameter = 0;
  bool last = false;
  std::vector<program::OperationId> operations;  ///< computed at this level
  std::vector<program::OperationId> outputs;     ///< operations among them that later levels read
  std::vector<program::OperationId> inputs;      ///< computed earlier and read here: the words of a key
  std::vector<std::size_t> input_word;           ///< positions of the inputs in a state
  std::vector<std::size_t> pass_word;            ///< words of a state that are passed on
};

/// Thrown for a configuration that no restriction excludes, and for which some restriction cannot be evaluated.
struct UnevaluableChoice {
  std::uint32_t key, position;
};

class LevelChooser {
 public:
  /// Fills `layer`, and `slot_words` with the outputs of each slot of each key.
  LevelChooser(const program::Program& program, const Component& component, const LevelPlan& plan,
               const LayerLimits& limits, Layer& layer, std::vector<std::int64_t>& slot_words);

  /// `keys`: the first `count` rows, whose words are the plan's inputs. Throws UnevaluableChoice and TooManyStates.
  void choose(const RowSet& keys, std::size_t count);

 private:
  /// The value or position of the parameter, from which operations are computed.
  struct Leaf {
    std::int64_t* column;
    std::vector<std::int64_t> words;
  };
  /// Consecutive lanes of one key.
  struct Run {
    std::uint32_t key, begin, end;
  };
  static constexpr std::size_t kShortRun = 64;

  std::vector<const std::int64_t*> columns_of(const std::vector<program::OperationId>& ids);
  void find_leaves(const program::Program& program);
  void find_conditions(const program::Program& program, const Component& component);
  void enter(std::uint32_t key, std::size_t begin, std::size_t end, const std::span<const std::uint32_t>& list);
  void choose_from_many(std::uint32_t key, std::size_t count, const std::span<const std::uint32_t>& list,
                        const RowSet& keys);
  void evaluate(const RowSet& keys);

  const LevelPlan& plan_;
  const LayerLimits& limits_;
  Layer& layer_;
  std::size_t domain_;  ///< number of values of the parameter
  Columns columns_;
  CandidateLists lists_;
  std::vector<Leaf> leaves_;
  bool ascending_ = false;   ///< larger positions have larger values
  bool all_differ_ = false;  ///< the value is an output, so that all choices differ
  std::vector<const std::int64_t*> conditions_, falling_;
  const std::int64_t* failure_ = nullptr;
  std::vector<std::int64_t*> input_columns_;
  SlotFinder slots_;
  // lanes to be evaluated, as runs of one key each
  std::vector<Run> runs_;
  std::array<std::uint32_t, Columns::kLanes> lane_position_;
  std::size_t lanes_ = 0;
};

}  // namespace ergotune
