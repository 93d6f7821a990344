// Finding one's way in JSON that may end anywhere: nothing is read behind the end, and what is found does not
// depend on what follows.
#include "store/json_scan.hpp"

#include <gtest/gtest.h>

#include <string>

namespace ergotune {
namespace {

/// Whatever stands behind a cut is another's: found is what ends before it, and nothing else.
template <class Find>
void check_cuts(const std::string& text, std::size_t from, std::size_t end, Find&& find) {
  for (std::size_t cut = from; cut <= text.size(); ++cut)
    EXPECT_EQ(find(std::string_view(text).substr(0, cut)), cut < end ? kNotFound : end)
        << text << " cut at " << cut;
}

TEST(JsonScan, AStringEndsAtItsOwnQuote) {
  const std::string text = R"(["a\"b\\","c"])";
  check_cuts(text, 2, 9, [](std::string_view view) { return after_string(view, 1); });
  check_cuts(text, 11, 13, [](std::string_view view) { return after_string(view, 10); });
  check_cuts(R"("")", 1, 2, [](std::string_view view) { return after_string(view, 0); });
}

TEST(JsonScan, AnObjectEndsAtItsOwnBracket) {
  const std::string text = R"(x{"}": [{}, [1, "]"]], "\"{": 2},})";
  const std::size_t end = text.size() - 2;
  check_cuts(text, 2, end, [](std::string_view view) { return after_nested(view, 1); });
  EXPECT_EQ(after_nested(text, 7), text.find(", \"\\\"{")) << "a list inside";
  check_cuts("[]]", 1, 2, [](std::string_view view) { return after_nested(view, 0); });
  EXPECT_EQ(after_nested(R"({"a)", 0), kNotFound);
}

TEST(JsonScan, WhiteSpaceIsWhatJsonCallsSo) {
  EXPECT_EQ(skip_space(" \n\r\tx ", 0), 4u);
  EXPECT_EQ(skip_space("x  y", 1), 3u);
  EXPECT_EQ(skip_space("x  y", 3), 3u);
  EXPECT_EQ(skip_space("\fx", 0), 0u);
  EXPECT_EQ(skip_space("  ", 0), 2u);
  EXPECT_EQ(skip_space(std::string_view("   x").substr(0, 2), 1), 2u) << "the end is the end";
  EXPECT_EQ(skip_space("", 0), 0u);
}

TEST(JsonScan, AKeyOfTheOutermostObjectIsFoundAsSoonAsItsValueBegins) {
  const std::string text =
      R"( {"n" : -1.5, "s":"x,\"}: ", "o" :{"in": [1, {"deep": 2}]} ,"l": [{"in": "]"}, 3], "t": true
,"last": null , "cache": {"in": 1})";
  for (const char* key : {"n", "s", "o", "l", "t", "last", "cache"}) {
    const std::size_t colon = text.find(':', text.find('"' + std::string(key) + '"'));
    const std::size_t at = text.find_first_not_of(" :", colon);
    for (std::size_t cut = 0; cut <= text.size(); ++cut)
      EXPECT_EQ(top_level_value(std::string_view(text).substr(0, cut), key), cut > at ? at : kNotFound)
          << key << " cut at " << cut;
  }
  for (const char* key : {"in", "deep", "x", "", "none"})
    EXPECT_EQ(top_level_value(text, key), kNotFound) << key;
}

TEST(JsonScan, WhatIsNoObjectHasNoKeys) {
  for (const char* text :
       {"", " ", "x", R"(["a", 1])", R"(["a": 1])", R"("a": 1)", R"({"b": 2} "a": 1)", R"({"b": 2; "a": 1})",
        R"({"b" "a": 1})", R"({"a" 1})", R"({b: 2, "a": 1})", R"({"b": 2, a: 1})", R"({"b": [2} "a": 1)",
        R"({"b": "2, "a": 1})", R"({'a': 1})", R"({"b": })"})
    EXPECT_EQ(top_level_value(text, "a"), kNotFound) << text;
}

}  // namespace
}  // namespace ergotune
