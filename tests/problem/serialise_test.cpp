#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "ergotune/random.hpp"
#include "problem/files/base64.hpp"

namespace ergotune {
namespace {

const std::filesystem::path kProblems = std::filesystem::path(ERGOTUNE_TEST_DATA) / "problems";

/// Draws problems from a seed. RapidCheck gives the seeds: its own generators of all that a problem holds
/// make this the slowest file of all to compile.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  /// Text with quotes, braces and line ends: what names and descriptions may hold.
  std::string message() { return text("abZ_9 \"\\\n{"); }
  /// Each once, as names are in a file.
  std::string identifier() { return "p" + text("abX_7") + "_" + std::to_string(++count_); }
  Value value() {
    switch (random_.below(4)) {
      case 0:
        return Value(random_.chance(0.5));
      case 1:
        return Value(static_cast<std::int64_t>(random_() >> random_.below(64)));
      case 2:
        return Value(real());
      default:
        return Value(message());
    }
  }
  ProblemFile problem();

 private:
  std::size_t few() { return random_.below(6); }
  std::string text(std::string_view letters) {
    std::string text;
    for (std::size_t n = few(); n > 0; --n) text += letters[random_.below(letters.size())];
    return text;
  }
  double real() { return random_.normal() * std::pow(10.0, static_cast<double>(random_.below(60)) - 30); }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return list.begin()[random_.below(list.size())];
  }
  Parameter parameter();
  Argument argument();

  Random random_;
  int count_ = 0;
};

Parameter Draw::parameter() {
  Parameter parameter;
  parameter.name = identifier();
  parameter.place = {message(), static_cast<int>(random_.below(99)), static_cast<int>(random_.below(99))};
  if (random_.chance(0.5)) {
    parameter.range = DependentRange{Expression::parse("1"), Expression::parse("n*2 + 1"), Expression::parse("3")};
  } else {
    for (std::size_t n = few(); n > 0; --n) parameter.values.push_back(value());
  }
  if (random_.chance(0.5)) parameter.default_value = value();
  parameter.kind = one_of({ParameterKind::code, ParameterKind::power_limit_w});
  return parameter;
}

Argument Draw::argument() {
  Argument argument;
  argument.name = identifier();
  argument.count = Expression::parse("n*m");
  argument.type = one_of({ElementType::float16, ElementType::uint64});
  argument.access = Access::read_write;
  argument.fill.kind = Fill::Kind::data;
  auto bytes = std::make_shared<std::vector<std::uint8_t>>(few());
  for (auto& byte : *bytes) byte = static_cast<std::uint8_t>(random_());
  argument.fill.data = std::move(bytes);
  return argument;
}

ProblemFile Draw::problem() {
  ProblemFile problem;
  problem.name = message();
  problem.attributes["description"] = message();
  problem.file = identifier();
  for (std::size_t n = few(); n > 0; --n) problem.constants[identifier()] = value();
  problem.constants_by_device[message()] = {{"n", value()}};
  for (std::size_t n = 1 + few(); n > 0; --n) problem.parameters.push_back(parameter());
  Restriction restriction;
  restriction.expression = Expression::parse(one_of({"a % 2 == 0", "a in (1, 2) and not b < 3", "'x' == c"}));
  restriction.name = message();
  restriction.restriction_class = one_of({RestrictionClass::device_limit, RestrictionClass::performance});
  problem.restrictions.push_back(restriction);
  problem.kernel().arguments.push_back(argument());
  problem.kernel().sources.push_back({Language::hip, "f.cpp", message(), {"/a", "/b c"}});
  problem.kernel().function = Template::parse("gemm<{{TILE}}, float>");
  problem.kernel().options["cuda"] = {Template::parse("-DX={{a+1}}")};
  problem.kernel().attributes["description"] = message();
  problem.kernel().launch.attributes["description"] = message();
  problem.kernel().launch.block = {Expression::parse("a"), Expression::parse("b")};
  problem.verification.kind = Verification::Kind::kernel;
  problem.verification.reference = std::make_shared<Kernel>(problem.kernel());
  problem.objective = {message(), Direction::maximise, {"f", 1, 2}};
  problem.plans.push_back({message(), {{message(), {"code"}, {{"x", value()}}, "time", "random", "25", {"f", 3, 4}}}});
  problem.run.seed = random_() >> 1;
  problem.run.strategy_options["x"] = value();
  problem.run.cold_cache = random_.chance(0.5);
  problem.run.sensors = {message()};
  return problem;
}

// The document holds every field, so two problems are the same when their documents are.
TEST(Serialise, RoundTripIsLossless) {
  EXPECT_TRUE(rc::check("serialise, deserialise, serialise again", [](std::uint64_t seed) {
    const ProblemFile problem = Draw(seed).problem();
    const std::string document = serialise(problem);
    const ProblemFile again = deserialise(document);
    RC_ASSERT(serialise(again) == document);
    RC_ASSERT(again.name == problem.name);
    RC_ASSERT(again.parameters.size() == problem.parameters.size());
    for (std::size_t i = 0; i < problem.parameters.size(); ++i) {
      const auto& [a, b] = std::pair(problem.parameters[i], again.parameters[i]);
      RC_ASSERT(a.values.size() == b.values.size());
      for (std::size_t j = 0; j < a.values.size(); ++j) RC_ASSERT(a.values[j].data() == b.values[j].data());
      RC_ASSERT(a.default_value.has_value() == b.default_value.has_value());
      RC_ASSERT(a.place.file == b.place.file && a.place.line == b.place.line);
    }
    RC_ASSERT(*again.kernel().arguments[0].fill.data == *problem.kernel().arguments[0].fill.data);
    RC_ASSERT(again.restrictions[0].expression.to_string() == problem.restrictions[0].expression.to_string());
    RC_ASSERT(again.run.seed == problem.run.seed);
  }));
}

TEST(Serialise, DamagedDocumentsAreErrors) {
  EXPECT_THROW(deserialise("{"), Error);
  EXPECT_THROW(deserialise("{}"), Error);
  EXPECT_THROW(deserialise(R"({"ergotune_problem": 99})"), Error);
}

TEST(Base64, KnownAnswersAndRoundTrip) {
  const auto encode = [](const std::string& text) {
    return base64_encode({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  };
  EXPECT_EQ(encode(""), "");
  EXPECT_EQ(encode("f"), "Zg==");
  EXPECT_EQ(encode("fo"), "Zm8=");
  EXPECT_EQ(encode("foo"), "Zm9v");
  EXPECT_EQ(encode("foobar"), "Zm9vYmFy");
  EXPECT_TRUE(rc::check("decode(encode(x)) == x", [](const std::vector<std::uint8_t>& bytes) {
    RC_ASSERT(base64_decode(base64_encode(bytes)) == bytes);
  }));
}

/// Stores, workers and other people's programs hand documents over: names of kinds and types may be anything.
TEST(Serialise, KindsAndTypesThatDoNotExistAreRefused) {
  const auto sound = nlohmann::ordered_json::parse(serialise(load_problem(kProblems / "vector_add.toml")));
  int tried = 0;
  const std::function<void(const nlohmann::ordered_json::json_pointer&, const nlohmann::ordered_json&)> walk =
      [&](const auto& at, const auto& json) {
        if (json.is_object())
          for (const auto& [name, value] : json.items()) {
            const bool kind = name == "kind" || name == "access" || name == "class" || name == "type";
            if (!kind || !value.is_string()) continue;
            for (const nlohmann::ordered_json& wrong :
                 {nlohmann::ordered_json(99), nlohmann::ordered_json(-1), nlohmann::ordered_json("float99")}) {
              auto document = sound;
              document[at / name] = wrong;
              EXPECT_THROW(deserialise(document.dump()), Error) << (at / name).to_string() << " " << wrong;
              ++tried;
            }
          }
        if (json.is_structured())
          for (const auto& [name, value] : json.items())
            walk(json.is_array() ? at / static_cast<std::size_t>(std::stoul(name)) : at / name, value);
      };
  walk(nlohmann::ordered_json::json_pointer(), sound);
  EXPECT_GT(tried, 10);
}

}  // namespace
}  // namespace ergotune
