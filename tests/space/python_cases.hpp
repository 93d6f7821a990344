// Expressions and what Python prints of them, with the names that they use.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <span>

#include "ergotune/space.hpp"

namespace ergotune {

inline const Constants kNames{{"a", 7},
                              {"b", -3},
                              {"n", 4096},
                              {"x", 0.5},
                              {"y", -2.75},
                              {"t", true},
                              {"f", false},
                              {"s", "abc"},
                              {"big", std::int64_t{9007199254740993}},
                              {"huge", std::int64_t{9223372036854775807}}};

struct Case {
  const char* text;
  const char* result;  // Python's repr
};

inline void expect_as_python(std::span<const Case> cases) {
  for (const auto& [text, result] : cases) {
    try {
      EXPECT_EQ(Expression::parse(text).evaluate(kNames).to_literal(), result) << text;
    } catch (const std::exception& error) {
      ADD_FAILURE() << text << ": " << error.what();
    }
  }
}

}  // namespace ergotune
