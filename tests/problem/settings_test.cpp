// The table of settings adds up: every row can be said in a problem file and on a command line, is kept by the document
// of workers and store, is documented, and makes another session exactly when it determines results.
#include "problem/tables/setting_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "error_of.hpp"
#include "problem/document/problem_document.hpp"

namespace ergotune {
namespace {

/// A value that is not the default.
GivenValue another(const Setting& setting) {
  const GivenValue present = value_of(RunConfig(), setting);
  if (setting.name == "strategy_options") return std::map<std::string, Value>{{"population", 20}};
  if (setting.is_list()) return std::vector<Value>{"first", "second"};
  const Value& value = std::get<Value>(present);
  if (value.is_bool()) return Value(!value.truthy());
  if (value.is_string()) return Value("other");
  if (value.is_integer()) return Value(value.as_integer() + 2);
  return Value(value.as_real() + 0.5);
}

std::string as_toml(const GivenValue& given) {
  const auto literal = [](const Value& value) {
    return value.is_string() ? fmt::format("\"{}\"", value.as_string())
           : value.is_bool() ? std::string(value.truthy() ? "true" : "false")
                             : value.to_string();
  };
  if (const auto* value = std::get_if<Value>(&given)) return literal(*value);
  std::vector<std::string> parts;
  if (const auto* list = std::get_if<std::vector<Value>>(&given)) {
    for (const Value& value : *list) parts.push_back(literal(value));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  for (const auto& [name, value] : std::get<std::map<std::string, Value>>(given))
    parts.push_back(name + " = " + literal(value));
  return fmt::format("{{ {} }}", fmt::join(parts, ", "));
}

ProblemFile problem_with(const std::string& tune) {
  return load_toml_problem("space_only = true\n[parameters]\nx = [1, 2]\n[tune]\n" + tune + "\n", "p.toml");
}

RunConfig changed(const Setting& setting) {
  RunConfig settings;
  give(settings, setting, another(setting), std::string(setting.name));
  return settings;
}

TEST(Settings, EveryMemberHasARowAndEveryRowAMember) {
  // A member that is added makes these lines fail to compile: give it a row, and count it here.
  [[maybe_unused]] auto [precision, warm_up, min_repeats, max_repeats, max_seconds, cold_cache, verify, reference] =
      MeasureSettings();
  [[maybe_unused]] auto [device, jobs, time_limit, compile_limit, sensors, energy, use_cache, cache_folder, quiet_node,
                         node_commands, nodes, node_silence] = LiveSettings();
  [[maybe_unused]] auto [objective, strategy, options, budget, seed, store, plan, controls, confirm, early_stop,
                         occupancy, reference_every, prior] = SearchSettings();
  EXPECT_EQ(setting_table().size(), 8u + 12u + 13u);
  std::set<std::string> names, options_seen;
  for (const Setting& setting : setting_table()) {
    EXPECT_TRUE(names.insert(std::string(setting.name)).second) << setting.name;
    EXPECT_TRUE(options_seen.insert(std::string(setting.option)).second) << setting.option;
    EXPECT_FALSE(setting.help.empty()) << setting.name;
    EXPECT_TRUE(setting.is_flag() || !default_text(setting).empty()) << setting.name << " says nothing of its default";
    // Each has a member of its own: changing it changes no other row.
    const RunConfig settings = changed(setting);
    for (const Setting& other : setting_table())
      EXPECT_EQ(is_default(settings, other), other.name != setting.name) << setting.name << " and " << other.name;
  }
}

TEST(Settings, EveryRowIsReadFromAProblemFile) {
  for (const Setting& setting : setting_table()) {
    if (setting.name == "objective") continue;  // becomes the problem's
    const ProblemFile problem = problem_with(fmt::format("{} = {}", setting.name, as_toml(another(setting))));
    EXPECT_EQ(value_of(problem.run, setting), another(setting)) << setting.name;
  }
  EXPECT_EQ(problem_with("objective = \"max 1/time\"").objective.text, "max 1/time");
}

TEST(Settings, EveryRowIsReadFromTheWordsOfACommandLine) {
  for (const Setting& setting : setting_table()) {
    if (setting.is_flag()) continue;
    RunConfig settings;
    const GivenValue value = another(setting);
    std::vector<std::string> strings;
    if (const auto* list = std::get_if<std::vector<Value>>(&value)) {
      for (const Value& v : *list) strings.push_back(v.to_string());
    } else if (setting.is_list()) {
      strings = {"population=20"};
    } else {
      strings = {std::get<Value>(value).to_string()};
    }
    parse_setting(settings, setting, strings, "--it");
    EXPECT_EQ(value_of(settings, setting), value) << setting.name;
  }
}

TEST(Settings, EveryRowIsKeptByTheDocument) {
  for (const Setting& setting : setting_table()) {
    ProblemFile problem = problem_with("");
    problem.run = changed(setting);
    const RunConfig again = deserialise(serialise(problem)).run;
    for (const Setting& row : setting_table())
      EXPECT_EQ(value_of(again, row), value_of(problem.run, row)) << setting.name << ", " << row.name;
  }
}

TEST(Settings, ConditionsChangeExactlyWithWhatDeterminesResults) {
  const std::string conditions = conditions_of(RunConfig(), true);
  for (const Setting& setting : setting_table()) {
    const std::string with = conditions_of(changed(setting), true);
    EXPECT_EQ(with != conditions, setting.determines_results()) << setting.name << ": " << with;
  }
}

TEST(Settings, TimesMayBeWrittenWithUnits) {
  const Setting& limit = *find_setting("time_limit");
  for (const auto& [word, seconds] :
       std::map<std::string, double>{{"2", 2}, {"500ms", 0.5}, {"8s", 8}, {"2min", 120}, {"1h", 3600}}) {
    RunConfig settings;
    parse_setting(settings, limit, {word}, "--time-limit");
    EXPECT_EQ(settings.time_limit, seconds) << word;
  }
}

TEST(Settings, PrecisionIsAShareOrAPercentage) {
  const Setting& precision = *find_setting("precision");
  for (const auto& [word, share] :
       std::map<std::string, double>{{"0.05", 0.05}, {"5%", 0.05}, {"2.5 %", 0.025}, {"1000%", 10}}) {
    RunConfig settings;
    parse_setting(settings, precision, {word}, "--precision");
    EXPECT_EQ(settings.precision, share) << word;
    RunConfig again;
    std::visit([&](const auto& value) { give(again, precision, value, "precision"); }, value_of(settings, precision));
    EXPECT_EQ(again.precision, share) << "as a document keeps it";
  }
  EXPECT_EQ(problem_with("precision = \"5%\"").run.precision, 0.05);
  for (const char* wrong : {"5", "1", "0%", "-5%", "%", "x%"}) {
    RunConfig settings;
    EXPECT_THROW(parse_setting(settings, precision, {wrong}, "--precision"), UserError) << wrong;
  }
}

TEST(Settings, AnotherStrategyForgetsTheOptionsOfTheOneBefore) {
  RunConfig settings = problem_with("strategy = \"genetic\"\nstrategy_options = { population = 20 }").run;
  parse_setting(settings, *find_setting("strategy"), {"genetic"}, "--strategy");
  parse_setting(settings, *find_setting("strategy_options"), {"mutation=0.5"}, "--strategy-option");
  EXPECT_EQ(settings.strategy_options, (std::map<std::string, Value>{{"population", 20}, {"mutation", 0.5}}));
  parse_setting(settings, *find_setting("strategy"), {"random"}, "--strategy");
  EXPECT_TRUE(settings.strategy_options.empty());
}

TEST(Settings, MistakesSayWhatWouldBeRight) {
  const auto complaint = [](std::string_view name, const std::string& word) -> std::string {
    RunConfig settings;
    return error_of([&] { parse_setting(settings, *find_setting(name), {word}, "--it"); }, "none");
  };
  EXPECT_EQ(complaint("jobs", "many"), "--it must be an integer, not the string \"many\"");
  EXPECT_EQ(complaint("jobs", "0"), "--it must be at least 1, not 0");
  EXPECT_EQ(complaint("precision", "0"), "--it must be greater than 0, not 0");
  EXPECT_EQ(complaint("precision", "nan"), "--it must be finite, not nan");
  EXPECT_EQ(complaint("warm_up", "99999999999"), "--it must be at most 1000000000, not 99999999999");
  EXPECT_EQ(complaint("seed", "-1"), "--it must be at least 0, not -1");
  EXPECT_EQ(complaint("seed", "18446744073709551615"), "none");
  EXPECT_EQ(complaint("strategy_options", "population"), "--it takes NAME=VALUE, not \"population\"");
  RunConfig settings;
  settings.min_repeats = 50;
  settings.max_repeats = 5;
  EXPECT_THROW(check_settings(settings), UserError);
  settings.min_repeats = RunConfig().min_repeats;
  EXPECT_NO_THROW(check_settings(settings)) << "the default gives way";
}

}  // namespace
}  // namespace ergotune
