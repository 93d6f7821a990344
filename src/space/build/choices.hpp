// The two ends of choosing a parameter's value: which values there are to try, and which of those that hold
// lead on alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "ergotune/error.hpp"
#include "space/build/layer_builder.hpp"
#include "space/build/row_set.hpp"

namespace ergotune {

/// Collects the choices of keys, which arrive in order.
class SlotFinder {
 public:
  SlotFinder(Layer& layer, std::vector<std::int64_t>& slot_words, std::vector<const std::int64_t*> outputs)
      : layer_(layer), slot_words_(slot_words), outputs_(std::move(outputs)), table_(64, 0), stamp_(64, 0) {}

  /// No two choices of a key have the same outputs: nothing need be compared.
  void all_differ() { all_differ_ = true; }

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
  CandidateLists(const program::Program& program, const Candidates& candidates, std::uint32_t parameter)
      : program_(program), candidates_(candidates), parameter_(program.parameters()[parameter]) {
    if (candidates.start == program::kNone) return;
    const auto& values = parameter_.values;
    first_ = values.front().as_integer();
    // ranges give whole numbers in a span that is small enough to index
    index_.assign(static_cast<std::size_t>(values.back().as_integer() - first_) + 1, kFree);
    for (std::uint32_t v = 0; v < values.size(); ++v)
      index_[static_cast<std::size_t>(values[v].as_integer() - first_)] = v;
  }
  bool all() const { return candidates_.start == program::kNone && candidates_.set == program::kNone; }

  std::span<const std::uint32_t> of(const std::vector<program::OperationId>& inputs, const std::int64_t* row) {
    if (all()) return {};
    const auto word = [&](program::OperationId id) {
      if (program_.is_constant(id)) return program_.at(id).word;
      return row[std::find(inputs.begin(), inputs.end(), id) - inputs.begin()];
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
    if (step < 0) std::reverse(list_.begin(), list_.end());
    return list_;
  }

 private:
  const program::Program& program_;
  const Candidates& candidates_;
  const Parameter& parameter_;
  std::int64_t first_ = 0;
  std::vector<std::uint32_t> index_, list_;
};

}  // namespace ergotune
