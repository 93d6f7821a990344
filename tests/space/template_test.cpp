// Templates piece by piece, and expressions that were made, not read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ergotune/base/error.hpp"
#include "ergotune/space/expression.hpp"

namespace ergotune {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Constants kKnown{{"a", 7}, {"width", 1.5}, {"s", "abc"}};

std::string rendered(const std::string& text) {
  return Template::parse(text).render([](std::string_view name) -> const Value* {
    const auto found = kKnown.find(name);
    return found == kKnown.end() ? nullptr : &found->second;
  });
}

TEST(Templates, KeepWhatStandsAroundTheirExpressions) {
  for (const auto& [text, becomes] : {std::pair{"", ""},
                                      {"x", "x"},
                                      {"{{a}}", "7"},
                                      {"{{a}}{{s}}", "7abc"},
                                      {"{{ a }}x", "7x"},
                                      {"x{{a}}", "x7"},
                                      {"x {{a}} y {{width * 2}} z", "x 7 y 3.0 z"},
                                      {"{a}", "{a}"},
                                      {"{{a}}}}", "7}}"},
                                      {"}}{{a}}", "}}7"},
                                      {"{{a}}{", "7{"},
                                      {"{{'{'}}", "{"},
                                      {"-D{{s}}={{a}}.", "-Dabc=7."}})
    EXPECT_EQ(rendered(text), becomes) << text;
  EXPECT_EQ(Template::parse("{{s}}{{b + a}} c {{a}}").names(), (std::vector<std::string>{"a", "b", "s"}));
  EXPECT_THAT(Template::parse("a b").names(), IsEmpty());
}

std::string fault(const std::string& text, const SourcePlace& place) {
  try {
    Template::parse(text, place);
  } catch (const UserError& error) {
    return error.place().to_string() + ": " + error.message();
  }
  return "none";
}

TEST(Templates, ShowFaultsWhereTheyStandInTheFile) {
  EXPECT_THAT(fault("ab {{$}}", {"f.toml", 3, 5}), HasSubstr("f.toml:3:10: \"$\" is not part"));
  EXPECT_THAT(fault("{{a}} {{1 + }}", {"f.toml", 3, 1}), HasSubstr("f.toml:3:13: "));
  EXPECT_THAT(fault("ab {{$}}", {"f.toml", 3, 0}), HasSubstr("f.toml:3:6: "));
  EXPECT_THAT(fault("ab {{$}}", {"f.toml", 0, 0}), HasSubstr("f.toml: \"$\""));
  EXPECT_EQ(fault("ab {{a", {"f.toml", 3, 5}), "f.toml:3:10: \"{{\" is not closed by \"}}\" in \"ab {{a\"");
  EXPECT_EQ(fault("ab {{a}", {"", 0, 0}), ": \"{{\" is not closed by \"}}\" in \"ab {{a}\"");
}

TEST(Expressions, MadeOfAValueAreThatValue) {
  for (const Value& value : {Value(7), Value(-2.5), Value(true), Value("it's")}) {
    const Expression constant = Expression::constant(value);
    EXPECT_EQ(constant.evaluate(Constants{}).data(), value.data());
    EXPECT_EQ(constant.text(), value.to_literal());
    EXPECT_THAT(constant.names(), IsEmpty());
  }
  EXPECT_EQ(Expression().text(), "0");
  EXPECT_EQ(Expression().evaluate(Constants{}), Value(0));
}

TEST(Expressions, SayWhichNameTheyLack) {
  const auto said = [](const char* text, const Constants& known) -> std::string {
    try {
      Expression::parse(text, SourcePlace{"f.toml", 2, 4}).evaluate(known);
    } catch (const UserError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(said("a + widht", kKnown),
            "f.toml:2:4: unknown name \"widht\" in \"a + widht\" (did you mean \"width\"?)");
  EXPECT_THAT(said("zzzzzz", kKnown), HasSubstr("valid names: a, s, width"));
  EXPECT_THAT(said("a", {}), HasSubstr("unknown name \"a\" in \"a\""));
  EXPECT_EQ(said("a + width", kKnown), "none");
}

}  // namespace
}  // namespace ergotune
