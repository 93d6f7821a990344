// A thousand random small spaces, each compared in full with brute force: the set, its order, look-up, neighbours.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>

#include "brute_force.hpp"

namespace ergotune {
namespace {

// Number of spaces: ERGOTUNE_RANDOM_SPACES, 1000 when unset (a second or two).
int space_count() {
  const char* text = std::getenv("ERGOTUNE_RANDOM_SPACES");
  return text != nullptr ? std::atoi(text) : 1000;
}

struct RandomSpace {
  std::vector<Parameter> parameters;
  std::vector<Restriction> restrictions;
};

// Texts of restrictions over names, as users write them and as they do not.
std::string random_number_expression(Random& random, const std::vector<std::string>& names, int depth) {
  const auto operand = [&] { return random_number_expression(random, names, depth - 1); };
  if (depth == 0 || random.chance(0.25))
    return random.chance(0.75) ? names[random.below(names.size())] : std::to_string(random.below(9));
  switch (random.below(12)) {
    case 0:
      return fmt::format("({} + {})", operand(), operand());
    case 1:
      return fmt::format("({} - {})", operand(), operand());
    case 2:
    case 3:
    case 4:
      return fmt::format("{} * {}", operand(), operand());
    case 5:
      return fmt::format("({}) % {}", operand(), 1 + random.below(5));
    case 6:
      return fmt::format("({}) // {}", operand(), 1 + random.below(5));
    case 7:
      return fmt::format("({}) / {}", operand(), 1 + random.below(5));
    case 8:
      return fmt::format("min({}, {})", operand(), operand());
    case 9:
      return fmt::format("max({}, {})", operand(), operand());
    case 10:
      return fmt::format("({} if {} > 2 else {})", operand(), operand(), operand());
    default:
      return fmt::format("abs(-{})", names[random.below(names.size())]);
  }
}

std::string random_condition(Random& random, const std::vector<std::string>& names, int depth) {
  const auto number = [&] { return random_number_expression(random, names, 2); };
  const auto condition = [&] { return random_condition(random, names, depth - 1); };
  static const char* kComparisons[] = {"<", "<=", ">", ">=", "==", "!="};
  if (depth > 0 && random.chance(0.4)) {
    switch (random.below(3)) {
      case 0:
        return fmt::format("({} and {})", condition(), condition());
      case 1:
        return fmt::format("({} or {})", condition(), condition());
      default:
        return fmt::format("not ({})", condition());
    }
  }
  const auto& name = names[random.below(names.size())];
  switch (random.below(7)) {
    case 0:
      return fmt::format("{} % ({} + 1) == 0", number(), name);
    case 1:
      return fmt::format("{0} == 0 or {1} % {0} == 0", name, number());
    case 2:
      return fmt::format("{} <= {} < {}", random.below(4), number(), 5 + random.below(60));
    case 3:
      return fmt::format("{} in (1, 2, {})", name, random.below(9));
    case 4:
      return number();
    default:
      return fmt::format("{} {} {}", number(), kComparisons[random.below(6)], number());
  }
}

RandomSpace random_space(Random& random) {
  RandomSpace space;
  const std::size_t dimensions = 1 + random.below(6);
  std::vector<std::string> names;
  for (std::size_t p = 0; p < dimensions; ++p) {
    Parameter parameter;
    parameter.name.assign(1, static_cast<char>('a' + p));
    const auto kind = random.below(10);
    if (kind == 0 && p > 0) {
      const auto other = fmt::format("int({})", names[random.below(names.size())]);
      parameter.range =
          DependentRange{Expression::parse(random.chance(0.5) ? "1" : other), Expression::parse(other + " + 3"),
                         Expression::parse(random.chance(0.5) ? "1" : "2")};
    } else if (kind == 1 && p > 0) {
      const std::string other = names[random.below(names.size())];
      parameter.generator = [other](const Scope& scope) {
        std::vector<Value> values{Value(1)};
        if (scope(other)->as_real() > 1) values.emplace_back(2);
        if (scope(other)->as_real() > 2) values.emplace_back(7);
        return values;
      };
    } else {
      const std::size_t count = 1 + random.below(5);
      for (std::size_t v = 0; v < count; ++v) {
        Value value(static_cast<std::int64_t>(random.below(kind == 2 ? 40 : 9)) - (kind == 3 ? 4 : 0));
        if (kind == 4) value = Value(value.as_real() / 4);
        if (kind == 5) value = Value(random.chance(0.5));
        if (std::ranges::find(parameter.values, value) == parameter.values.end()) parameter.values.push_back(value);
      }
    }
    names.push_back(parameter.name);
    space.parameters.push_back(std::move(parameter));
  }
  for (auto n = random.below(5); n > 0; --n) {
    Restriction restriction;
    if (random.chance(0.08)) {
      const auto name = names[random.below(names.size())], other = names[random.below(names.size())];
      restriction.function_names = {name, other};
      restriction.name = "by function";
      restriction.function = [name, other](const Scope& scope) {
        return scope(name)->as_real() + scope(other)->as_real() < 9;
      };
    } else {
      restriction.expression = Expression::parse(random_condition(random, names, 2));
    }
    space.restrictions.push_back(std::move(restriction));
  }
  return space;
}

std::string text_of(const RandomSpace& space) {
  std::string text;
  for (const auto& parameter : space.parameters) {
    text += fmt::format("{}:", parameter.name);
    for (const auto& value : parameter.values) text += fmt::format(" {}", value.to_literal());
    if (parameter.range)
      text += fmt::format(" range {} {}", parameter.range->start.text(), parameter.range->stop.text());
    if (parameter.generator) text += " generator";
    text += "\n";
  }
  for (const auto& restriction : space.restrictions) text += restriction.label() + "\n";
  return text;
}

std::size_t distance(Neighbourhood kind, const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  std::size_t differing = 0, far = 0;
  for (std::size_t p = 0; p < a.size(); ++p) {
    differing += a[p] != b[p];
    far += std::max(a[p], b[p]) - std::min(a[p], b[p]) > 1;
  }
  switch (kind) {
    case Neighbourhood::hamming:
      return differing;
    case Neighbourhood::adjacent:
      return differing == 0 ? 0 : far == 0 ? 1 : 2;
    case Neighbourhood::strictly_adjacent:
      return differing == 1 && far > 0 ? 2 : differing;
  }
  return 0;
}

void check_space(std::uint64_t seed) {
  Random random(seed);
  const RandomSpace given = random_space(random);
  const auto text = text_of(given);
  std::optional<std::vector<Configuration>> expected;
  std::string failure;
  try {
    expected = test::brute_force(given.parameters, given.restrictions);
  } catch (const UserError& error) {
    failure = error.what();
  }
  std::optional<SearchSpace> space;
  try {
    space = SearchSpace::build(given.parameters, given.restrictions);
  } catch (const UserError& error) {
    // brute force tests restrictions in their order; a configuration that a later one excludes is no error here
    if (expected && !expected->empty()) RC_FAIL(text + "built: " + error.what());
    if (expected && std::string(error.what()).find("has no values") == std::string::npos) RC_FAIL(text + error.what());
    return;
  }
  if (!expected) return;
  RC_ASSERT(space->size() == expected->size());
  const auto all = test::all_of(*space);
  if (!(all == *expected)) RC_FAIL(text);
  if (all.empty()) {
    RC_ASSERT(!space->why_empty().empty());
    return;
  }
  std::vector<std::vector<std::uint32_t>> positions;
  for (std::uint64_t i = 0; i < space->size(); ++i) {
    auto& row = positions.emplace_back(space->dimensions());
    space->values_at(i, row);
    RC_ASSERT(space->index_of(row) == i);
    RC_ASSERT(space->index_of(all[i]) == i);
  }
  // what is not in the set has no index
  for (int i = 0; i < 20; ++i) {
    std::vector<std::uint32_t> row;
    for (const auto& parameter : space->parameters())
      row.push_back(static_cast<std::uint32_t>(random.below(parameter.values.size() + 1)));
    const auto found = std::ranges::find(positions, row);
    const auto index = space->index_of(row);
    RC_ASSERT(index.has_value() == (found != positions.end()));
    if (index) RC_ASSERT(*index == static_cast<std::uint64_t>(found - positions.begin()));
  }
  std::vector<ConfigurationIndex> neighbours;
  for (int i = 0; i < 3; ++i) {
    const auto centre = space->sample(random);
    for (const auto kind : {Neighbourhood::hamming, Neighbourhood::adjacent, Neighbourhood::strictly_adjacent}) {
      space->neighbours(centre, kind, neighbours);
      std::vector<ConfigurationIndex> wanted;
      for (std::uint64_t j = 0; j < positions.size(); ++j)
        if (distance(kind, positions[centre], positions[j]) == 1) wanted.push_back(j);
      RC_ASSERT(neighbours == wanted);
    }
    // nearest: as near as any
    std::vector<double> point;
    for (const auto& parameter : space->parameters())
      point.push_back(random.uniform() * static_cast<double>(parameter.values.size()) - 0.5);
    const auto cost = [&](std::uint64_t j) {
      double sum = 0;
      for (std::size_t p = 0; p < point.size(); ++p) sum += std::abs(point[p] - positions[j][p]);
      return sum;
    };
    double best = cost(0);
    for (std::uint64_t j = 1; j < positions.size(); ++j) best = std::min(best, cost(j));
    RC_ASSERT(std::abs(cost(space->nearest(point)) - best) < 1e-9);
  }
  // the same set given as a list
  std::vector<Parameter> plain;
  for (const auto& parameter : space->parameters()) {
    plain.emplace_back();
    plain.back().name = parameter.name;
    plain.back().values = parameter.values;
  }
  auto listed = all;
  random.shuffle(std::span(listed));
  listed.push_back(listed.front());
  const auto copy = SearchSpace::from_configurations(plain, listed);
  RC_ASSERT(test::all_of(copy) == all);
}

TEST(RandomSpaces, MatchBruteForce) {
  const int count = space_count();
  std::uint64_t done = 0;
  EXPECT_TRUE(rc::check("each space equals brute force", [&] {
    // RapidCheck runs a property 100 times; each run takes its share of the spaces
    const int share = std::max(1, count / 100);
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    for (int i = 0; i < share; ++i) {
      check_space(seed + static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ull);
      ++done;
    }
  }));
  RecordProperty("spaces", static_cast<int>(done));
}

}  // namespace
}  // namespace ergotune
