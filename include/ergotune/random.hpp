// Seeded random numbers. Unlike those of the distributions in <random>, the sequence is the same on every platform and
// with every standard library. All seeded parts of ergotune use this generator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace ergotune {

/// xoshiro256++ (Blackman and Vigna, 2019), seeded by splitmix64.
class Random {
 public:
  using result_type = std::uint64_t;
  explicit Random(std::uint64_t seed = 1);
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  /// 64 random bits.
  std::uint64_t operator()();
  /// Uniform integer in [0, bound); bound > 0. Unbiased (Lemire, 2019).
  std::uint64_t below(std::uint64_t bound);
  /// Uniform real in [0, 1).
  double uniform();
  /// Standard normal (polar method).
  double normal();
  /// True with probability p.
  bool chance(double p) { return uniform() < p; }
  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::uint64_t state_[4];
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace ergotune
