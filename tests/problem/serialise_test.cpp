#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "ergotune/problem/load.hpp"
#include "problem/base64.hpp"

namespace ergotune {
namespace {

const std::filesystem::path kProblems = std::filesystem::path(ERGOTUNE_TEST_DATA) / "problems";

/// Text without quotes and control characters: what names and descriptions hold.
rc::Gen<std::string> words() {
  return rc::gen::container<std::string>(
      rc::gen::element('a', 'b', 'Z', '_', '9', ' ', '"', '\\', '\n', '{'));
}
rc::Gen<std::string> identifiers() {
  return rc::gen::map(rc::gen::container<std::string>(rc::gen::element('a', 'b', 'X', '_', '7')),
                      [](const std::string& tail) { return "p" + tail; });
}
rc::Gen<Value> values() {
  return rc::gen::oneOf(
      rc::gen::map(rc::gen::arbitrary<bool>(), [](bool x) { return Value(x); }),
      rc::gen::map(rc::gen::arbitrary<std::int64_t>(), [](std::int64_t x) { return Value(x); }),
      rc::gen::map(rc::gen::arbitrary<double>(), [](double x) { return Value(x); }),
      rc::gen::map(words(), [](const std::string& x) { return Value(x); }));
}

Problem arbitrary_problem() {
  Problem problem;
  problem.name = *words();
  problem.description = *words();
  problem.file = *identifiers();
  for (const auto& [name, value] :
       *rc::gen::container<std::map<std::string, Value>>(identifiers(), values())) {
    problem.constants[name] = value;
  }
  problem.constants_by_device[*words()] = {{"n", *values()}};
  for (int i = *rc::gen::inRange(1, 5); i > 0; --i) {
    Parameter parameter;
    parameter.name = *identifiers();
    parameter.place = {*words(), *rc::gen::inRange(0, 99), *rc::gen::inRange(0, 99)};
    if (*rc::gen::arbitrary<bool>()) {
      parameter.range =
          DependentRange{Expression::parse("1"), Expression::parse("n*2 + 1"), Expression::parse("3")};
    } else {
      parameter.values = *rc::gen::container<std::vector<Value>>(values());
    }
    if (*rc::gen::arbitrary<bool>()) parameter.default_value = *values();
    parameter.kind = *rc::gen::element(ParameterKind::code, ParameterKind::power_limit_w);
    problem.parameters.push_back(parameter);
  }
  Restriction restriction;
  restriction.expression = Expression::parse(
      *rc::gen::element<std::string>("a % 2 == 0", "a in (1, 2) and not b < 3", "'x' == c"));
  restriction.name = *words();
  restriction.restriction_class =
      *rc::gen::element(RestrictionClass::device_limit, RestrictionClass::performance);
  problem.restrictions.push_back(restriction);
  Argument argument;
  argument.name = *identifiers();
  argument.count = Expression::parse("n*m");
  argument.type = *rc::gen::element(ElementType::float16, ElementType::uint64);
  argument.access = Access::read_write;
  argument.fill.kind = Fill::Kind::data;
  argument.fill.seed = *rc::gen::arbitrary<std::uint64_t>();
  argument.fill.low = *rc::gen::arbitrary<double>();
  argument.fill.data = std::make_shared<std::vector<std::uint8_t>>(
      *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>()));
  problem.kernel().arguments.push_back(argument);
  problem.kernel().sources.push_back({Language::hip, "f.cpp", *words(), {"/a", "/b c"}});
  problem.kernel().function = Template::parse("gemm<{{TILE}}, float>");
  problem.kernel().options["cuda"] = {Template::parse("-DX={{a+1}}")};
  problem.kernel().launch.block = {Expression::parse("a"), Expression::parse("b")};
  problem.verification.kind = Verification::Kind::kernel;
  problem.verification.reference = std::make_shared<Kernel>(problem.kernel());
  problem.verification.files["c"] = "c.bin";
  problem.objective = {*words(), Direction::maximise, {"f", 1, 2}};
  problem.plans.push_back({*words(), {{*words(), {"code"}, {{"x", *values()}}, "time", "random", "25", {"f", 3, 4}}}});
  problem.settings.seed = *rc::gen::arbitrary<std::uint64_t>();
  problem.settings.strategy_options["x"] = *values();
  problem.settings.cold_cache = *rc::gen::arbitrary<bool>();
  problem.settings.sensors = {*words()};
  return problem;
}

// The document holds every field, so two problems are the same when their documents are.
TEST(Serialise, RoundTripIsLossless) {
  EXPECT_TRUE(rc::check("serialise, deserialise, serialise again", [] {
    const Problem problem = arbitrary_problem();
    const std::string document = serialise(problem);
    const Problem again = deserialise(document);
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
    RC_ASSERT(again.kernel().arguments[0].fill.low == problem.kernel().arguments[0].fill.low);
    RC_ASSERT(again.restrictions[0].expression.to_string() == problem.restrictions[0].expression.to_string());
    RC_ASSERT(again.settings.seed == problem.settings.seed);
  }));
}

TEST(Serialise, WholeFileGoesThrough) {
  const Problem problem = load_problem(kProblems / "gemm.toml");
  const Problem again = deserialise(serialise(problem));
  EXPECT_EQ(serialise(again), serialise(problem));
  EXPECT_EQ(again.kernel().sources[0].text, problem.kernel().sources[0].text);
  EXPECT_EQ(again.execution_parameters.size(), 3u);
  EXPECT_EQ(again.parameters[5].range->stop.text(), problem.parameters[5].range->stop.text());
}

TEST(Serialise, KeepsEveryKeyOfProblem) {
  // Whoever adds a field to Problem meets this list and thinks of the document.
  const auto json = nlohmann::json::parse(serialise(load_problem(kProblems / "vector_add.toml")));
  EXPECT_EQ(json.size(), 16u);
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

}  // namespace
}  // namespace ergotune
