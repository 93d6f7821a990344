// What strategies ask for, as one number: for the tests that it stays the same.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "ergotune/search/strategy.hpp"

namespace ergotune::search_tests {

inline constexpr std::uint64_t kPrime = 0x100000001b3;

using Answer = std::function<Outcome(ConfigurationIndex)>;

/// A hash (FNV-1a) of what is asked for, `batch` at a time.
inline std::uint64_t sequence(const std::string& name, const StrategyContext& context, const Answer& answer,
                              std::size_t count, std::size_t batch) {
  const auto strategy = make_strategy(name, context);
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::size_t done = 0; done < count; done += batch) {
    const auto asked = strategy->ask(batch);
    for (const ConfigurationIndex index : asked) {
      hash = (hash ^ index) * kPrime;
      strategy->tell(index, answer(index));
    }
    if (asked.empty()) break;
  }
  return hash;
}

inline void expect_sequences(const std::map<std::string, std::uint64_t>& expected,
                             const std::function<std::uint64_t(const StrategyDescription&)>& sequences_of) {
  for (const auto& strategy : strategies()) {
    const auto known = expected.find(strategy.name);
    const std::uint64_t found = sequences_of(strategy);
    EXPECT_TRUE(known != expected.end() && known->second == found)
        << fmt::format("{{\"{}\", 0x{:016x}}},", strategy.name, found);
  }
}

}  // namespace ergotune::search_tests
