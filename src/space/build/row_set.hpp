// Rows of words with their numbers: the states of a level while it is built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

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
  static constexpr std::size_t kFirstBlock = kBlock;  // small sets, by far the most, live in one growing vector

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

}  // namespace ergotune
