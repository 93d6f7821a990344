// A text that is part of a longer one ends where it ends.
#include <gtest/gtest.h>

#include "ergotune/base/error.hpp"
#include "ergotune/space/expression.hpp"

namespace ergotune {
namespace {

/// The form that a text has, or what is wrong with it.
std::string read(std::string_view text) {
  try {
    return Expression::parse(text, SourcePlace{"f.toml", 3, 1}).to_string();
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(Syntax, WhatFollowsATextIsNotRead) {
  for (const std::string text : {"",      " ",        "1",      "12",
                                 "1_0",   "1_",       "1.",     "1.5",
                                 ".5",    ".",        "1e",     "1e5",
                                 "1e+",   "1e+5",     "1.5e",   "1E-3",
                                 "0",     "0x",       "0x1f",   "a",
                                 "a_1",   "a.",       "a.b",    "'s'",
                                 "'",     "'abc",     "'abc\\", "''",
                                 "a <",   "a < b",    "a *",    "a * b",
                                 "a /",   "a // b",   "a =",    "a !",
                                 "a &",   "-",        "-1",     "(",
                                 "(1",    "(1)",      "[1",     "[1,",
                                 "max(a", "max(a)",   "not",    "not a",
                                 "a not", "a in [1]", "a if b", "a if b else c",
                                 "$"}) {
    const std::string alone = read(text);
    for (const char* behind : {"5", "_5", ".5", "x", "x1", "e5",  "5e5", "+5", "-5", "=",  "==",  "*", "/",
                               "&", "'",  "\"", ")", "]",  ",1)", " ",   " 5", "b",  ".b", "\\'", "f"}) {
      const std::string longer = text + behind;
      EXPECT_EQ(read(std::string_view(longer).substr(0, text.size())), alone) << text << " before " << behind;
    }
  }
}

TEST(Templates, EndWhereTheirTextEnds) {
  const std::string longer = "-D{{n}}}}{{n}}";
  for (std::size_t cut = 0; cut <= longer.size(); ++cut) {
    const auto parts = [](std::string_view text) -> std::string {
      try {
        return Template::parse(text).render([](std::string_view) -> const Value* {
          static const Value seven(7);
          return &seven;
        });
      } catch (const UserError& error) {
        return error.what();
      }
    };
    EXPECT_EQ(parts(std::string_view(longer).substr(0, cut)), parts(longer.substr(0, cut))) << cut;
  }
}

}  // namespace
}  // namespace ergotune
