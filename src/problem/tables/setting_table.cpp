#include "problem/tables/setting_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.hpp"
#include "ergotune/error.hpp"

namespace ergotune {
namespace {

using enum Determines;
using S = RunConfig;

Setting searching(Setting setting) {
  setting.only_searching = true;
  return setting;
}

const std::array kTable{
    Setting{"device", "-d,--device", &S::device, "", nothing,
            "Where to run: cuda:0, cuda:0,cuda:1, cuda:all, opencl, opencl:0:1, host, replay:FILE, sim:PROFILE",
            "the best here"},
    Setting{"objective", "--objective", &S::objective, "", nothing,
            "What to improve: time, energy, \"max gflops\", \"pareto(time, energy)\"", "the problem's own, else time"},
    searching({"strategy", "-s,--strategy", &S::strategy, "", nothing, "How to search: auto, brute_force, random ..."}),
    searching({"budget", "-b,--budget", &S::budget, "", nothing,
               "When to stop: evaluations (25), time (10min), energy (500J), several with commas; known results for "
               "the same objective count, "
               "and up to a third is kept for the confirmation",
               "when the strategy ends"}),
    searching({"seed", "--seed", &S::seed, "", nothing, "Seed of everything random"}),
    Setting{"jobs", "-j,--jobs", &S::jobs, "", nothing, "Compile workers", "one per core", 1},
    searching({"store", "--store", &S::store, "", nothing, "Results database, made where there is none",
               "ergotune.db; in Python none"}),
    searching({"plan", "--plan", &S::plan, "", nothing,
               "Tune in stages by a plan (race_to_idle, model_steered ...); several, with commas, are compared",
               "none"}),
    Setting{"sensors", "--sensor", &S::sensors, "", results_in_fixed_text,
            "Energy sensor: nvml:0, rapl:package-0, powersensor3:/dev/ttyACM0 ...", "the device's own"},
    Setting{"controls", "--control", &S::controls, "", results_in_fixed_text,
            "Clock and limit control: nvml:0, tegra, amdgpu:card0, cpufreq", "the device's own"},
    searching({"strategy_options", "--strategy-option", &S::strategy_options, "", nothing,
               "NAME=VALUE, a strategy's hyperparameter", "the strategy's own"}),
    Setting{"precision",
            "--precision",
            &S::precision,
            "",
            results_in_fixed_text,
            "Target half-width of the 95 % interval, relative to the value: 0.05 or 5%",
            {},
            0,
            true},
    Setting{"time_limit",
            "--time-limit",
            &S::time_limit,
            "s",
            nothing,
            "Time that one configuration may take on the device",
            {},
            0,
            true},
    Setting{"compile_time_limit",
            "--compile-time-limit",
            &S::compile_time_limit,
            "s",
            nothing,
            "Time that one compilation may take",
            {},
            0,
            true},
    Setting{"max_seconds",
            "--max-seconds",
            &S::max_seconds,
            "s",
            results_in_fixed_text,
            "Timed launches per configuration at most, beyond what min_repeats needs",
            {},
            0,
            true},
    Setting{"energy_budget", "--energy-budget", &S::energy_seconds, "s", results_in_fixed_text,
            "Energy measurement per configuration at most", "what the sensor needs", 0, true},
    Setting{"reference", "--reference", &S::reference_seconds, "s", results,
            "Energy over a long steady state of this length, to compare short measurements with", "none", 0, true},
    Setting{"warm_up", "--warm-up", &S::warm_up, "", results_in_fixed_text, "Launches before the first timed one"},
    Setting{
        "min_repeats", "--min-repeats", &S::min_repeats, "", results_in_fixed_text, "Timed samples at least", {}, 1},
    Setting{"max_repeats", "--max-repeats", &S::max_repeats, "", results_in_fixed_text, "Timed samples at most", {}, 1},
    Setting{"cold_cache", "--cold-cache", &S::cold_cache, "", results_in_fixed_text,
            "Flush the last-level cache before every timed launch"},
    Setting{"verify", "--no-verify", &S::verify, "", results_in_fixed_text, "Check the kernel's outputs"},
    Setting{"cache", "--no-cache", &S::use_cache, "", nothing, "Keep compiled code on disk"},
    Setting{"cache_dir", "--cache-dir", &S::cache_folder, "", nothing, "Folder for compiled code",
            "~/.cache/ergotune/compiled"},
    Setting{"quiet_node", "--quiet-node", &S::quiet_node, "", results,
            "Measure with the node's other devices idle, so that its own meters may be used"},
    Setting{"node_commands", "--node-command", &S::node_commands, "", nothing,
            "Command that starts {}, an agent, on a node: 'ssh gpu3 {}', 'docker exec -i c {}', '{}' for this machine",
            "none"},
    Setting{"nodes", "--nodes", &S::nodes, "", nothing,
            "slurm: all nodes of the allocation; or a file with a node command in each line", "none"},
    Setting{"node_silence",
            "--node-silence",
            &S::node_silence,
            "s",
            nothing,
            "Time without a message after which a node is given up; while its agent starts, 20 times as long",
            {},
            0,
            true},
    searching({"reference_every",
               "--reference-every",
               &S::reference_every,
               "s",
               nothing,
               "Longest time between baseline runs of the default",
               {},
               0,
               true}),
    searching(
        {"confirm", "--no-confirm", &S::confirm, "", nothing, "Measure the best candidates again before reporting"}),
    searching({"early_stop", "--no-early-stop", &S::early_stop, "", nothing,
               "Let auto end when nothing better is likely, and every search when nothing works"}),
    searching({"occupancy", "--occupancy", &S::occupancy, "", nothing,
               "Search only where every kernel's occupancy is above this share, such as 0.8", "everywhere"}),
    searching(
        {"prior", "--prior", &S::prior, "", nothing,
         "Start from earlier results: a recording, a store, or auto (other sessions of this problem in the store)",
         "none"}),
};

std::string type_name(const Value& value) {
  if (value.is_string()) return fmt::format("the string \"{}\"", value.as_string());
  if (value.is_bool()) return value.truthy() ? "true" : "false";
  if (value.is_integer()) return fmt::format("the integer {}", value.as_integer());
  return fmt::format("the number {}", value.as_real());
}
std::string type_name(const std::vector<Value>&) { return "a list"; }
std::string type_name(const std::map<std::string, Value>&) { return "a table"; }

template <class T>
std::optional<T> whole(std::string_view text) {
  T number{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Assigns a value to a setting, according to the type of its member.
class Setter {
 public:
  Setter(RunConfig& settings, const Setting& setting, const GivenValue& given, const std::string& what)
      : settings_(settings), setting_(setting), given_(given), what_(what) {}

  void operator()(bool RunConfig::*member) const {
    settings_.*member = std::get<bool>(one(&Value::is_bool, "true or false").data());
  }
  void operator()(int RunConfig::*member) const {
    const std::int64_t value = one(&Value::is_integer, "an integer").as_integer();
    check_bounds(static_cast<double>(value), value);
    if (value > 1'000'000'000) complain(fmt::format("must be at most 1000000000, not {}", value));
    settings_.*member = static_cast<int>(value);
  }
  void operator()(double RunConfig::*member) const {
    const bool share = member == &RunConfig::precision;
    if (const auto* text = std::get_if<Value>(&given_);
        share && text && text->is_string() && text->as_string().ends_with('%'))
      if (const auto percent = whole<double>(trimmed(text->as_string().substr(0, text->as_string().size() - 1)))) {
        check_bounds(*percent, text->as_string());
        settings_.*member = *percent / 100;
        return;
      }
    const Value& value = one(&Value::is_number, "a number");
    if (value.is_bool()) wrong_kind("a number");
    check_bounds(value.as_real(), value.as_real());
    if (share && value.as_real() >= 1)
      complain(
          fmt::format("is a share of the value: {0:g} would be {1:g} %; write 0.05 or 5% (\"{1:g}%\" if that is meant)",
                      value.as_real(), 100 * value.as_real()));
    settings_.*member = value.as_real();
  }
  void operator()(std::uint64_t RunConfig::*member) const {
    const std::int64_t value = one(&Value::is_integer, "an integer").as_integer();
    check_bounds(static_cast<double>(value), value);
    settings_.*member = static_cast<std::uint64_t>(value);
  }
  void operator()(std::string RunConfig::*member) const {
    // A budget is a string or a plain number of evaluations.
    if (member == &RunConfig::budget) {
      const char* expected = "a count of evaluations or a time such as \"10min\"";
      const auto* value = std::get_if<Value>(&given_);
      if (!value || !(value->is_string() || value->is_integer())) wrong_kind(expected);
      if (value->is_integer() && value->as_integer() <= 0)
        complain(fmt::format("must be greater than 0, not {}", value->as_integer()));
      settings_.budget = value->to_string();
      return;
    }
    std::string text = one(&Value::is_string, "a string").as_string();
    // Different strategies have different options.
    if (member == &RunConfig::strategy && text != settings_.strategy) settings_.strategy_options.clear();
    settings_.*member = std::move(text);
  }
  void operator()(std::filesystem::path RunConfig::*member) const {
    settings_.*member = one(&Value::is_string, "a string").as_string();
  }
  void operator()(std::vector<std::string> RunConfig::*member) const {
    std::vector<Value> values;
    if (const auto* value = std::get_if<Value>(&given_))
      values = {*value};
    else if (const auto* list = std::get_if<std::vector<Value>>(&given_))
      values = *list;
    else
      wrong_kind("a string or a list of strings");
    std::vector<std::string> texts;
    for (const Value& value : values) {
      if (!value.is_string()) wrong_kind("a string or a list of strings");
      texts.push_back(value.as_string());
    }
    settings_.*member = std::move(texts);
  }
  void operator()(std::map<std::string, Value> RunConfig::*member) const {
    const auto* values = std::get_if<std::map<std::string, Value>>(&given_);
    if (!values) wrong_kind("a table of names with values");
    for (const auto& [name, value] : *values) (settings_.*member)[name] = value;
  }

 private:
  const Value& one(bool (Value::*fits)() const, const char* expected) const {
    const auto* value = std::get_if<Value>(&given_);
    if (!value || !(value->*fits)()) wrong_kind(expected);
    return *value;
  }
  template <class T>
  void check_bounds(double number, T shown) const {
    if (!std::isfinite(number)) complain(fmt::format("must be finite, not {}", shown));
    if (setting_.exclusive_minimum ? number <= setting_.least : number < setting_.least)
      complain(fmt::format("must be {} {:g}, not {}", setting_.exclusive_minimum ? "greater than" : "at least",
                           setting_.least, shown));
  }
  [[noreturn]] void wrong_kind(const char* expected) const {
    complain(fmt::format("must be {}, not {}", expected,
                         std::visit([](const auto& given) { return type_name(given); }, given_)));
  }
  [[noreturn]] void complain(const std::string& why) const { throw UserError(what_ + " " + why); }

  RunConfig& settings_;
  const Setting& setting_;
  const GivenValue& given_;
  const std::string& what_;
};

/// "500ms", "8s", "2min", "1h" in s; nullopt for what is none.
std::optional<double> duration_from(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 4> units{
      {{"ms", 1e-3}, {"min", 60.0}, {"h", 3600.0}, {"s", 1.0}}};
  for (const auto& [unit, seconds] : units)
    if (text.ends_with(unit))
      if (const auto number = whole<double>(text.substr(0, text.size() - unit.size()))) return *number * seconds;
  return std::nullopt;
}

std::string text_of(const Value& value) {
  return value.is_real() ? fmt::format("{:g}", value.as_real()) : value.to_string();
}
std::string text_of(const std::vector<Value>& list) {
  std::vector<std::string> words;
  for (const Value& value : list) words.push_back(text_of(value));
  return fmt::format("{}", fmt::join(words, " "));
}
std::string text_of(const std::map<std::string, Value>& values) {
  std::vector<std::string> words;
  for (const auto& [name, value] : values) words.push_back(name + "=" + text_of(value));
  return fmt::format("{}", fmt::join(words, " "));
}

/// Text of the settings that are always part of the session key, even at their defaults. New settings are added by name
/// in conditions_of().
std::string fixed_conditions(const RunConfig& s, bool energy) {
  std::string text = fmt::format("precision {:g}, repeats {}-{}, warm-up {}, {} cache, at most {:g} s", s.precision,
                                 s.min_repeats, s.max_repeats, s.warm_up, s.cold_cache ? "cold" : "hot", s.max_seconds);
  if (energy) {
    text += fmt::format(", energy by {}",
                        s.sensors.empty() ? "the device's own sensor" : fmt::format("{}", fmt::join(s.sensors, " ")));
    if (s.energy_seconds > 0) text += fmt::format(" for {:g} s", s.energy_seconds);
  }
  if (!s.verify) text += ", not verified";
  if (!s.controls.empty()) text += fmt::format(", controls {}", fmt::join(s.controls, " "));
  return text;
}

}  // namespace

bool Setting::is_list() const {
  return std::holds_alternative<std::vector<std::string> RunConfig::*>(member) ||
         std::holds_alternative<std::map<std::string, Value> RunConfig::*>(member);
}

std::span<const Setting> setting_table() { return kTable; }

const Setting* find_setting(std::string_view name) {
  const auto found = std::ranges::find_if(kTable, [&](const Setting& s) { return s.name == name; });
  return found == kTable.end() ? nullptr : &*found;
}

std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const Setting& setting : kTable) names.emplace_back(setting.name);
  return names;
}

Value parse_value(const std::string& text) {
  if (const auto integer = whole<std::int64_t>(text)) return *integer;
  if (const auto real = whole<double>(text)) return *real;
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  return text;
}

void give(RunConfig& settings, const Setting& setting, const GivenValue& value, const std::string& what) {
  std::visit(Setter(settings, setting, value, what), setting.member);
}

void parse_setting(RunConfig& settings, const Setting& setting, const std::vector<std::string>& words,
                   const std::string& what) {
  if (std::holds_alternative<std::map<std::string, Value> RunConfig::*>(setting.member)) {
    std::map<std::string, Value> values;
    for (const std::string& word : words) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos || equals == 0)
        throw UserError(fmt::format("{} takes NAME=VALUE, not \"{}\"", what, word));
      values[word.substr(0, equals)] = parse_value(word.substr(equals + 1));
    }
    return give(settings, setting, values, what);
  }
  if (setting.is_list()) return give(settings, setting, std::vector<Value>(words.begin(), words.end()), what);
  const std::string& word = words.at(0);
  if (const auto* member = std::get_if<std::uint64_t RunConfig::*>(&setting.member)) {
    // A seed may use all 64 bits, which a Value cannot hold.
    if (const auto number = whole<std::uint64_t>(word)) {
      settings.** member = *number;
      return;
    }
  }
  if (setting.unit == "s")
    if (const auto seconds = duration_from(word)) return give(settings, setting, Value(*seconds), what);
  const bool text = std::holds_alternative<std::string RunConfig::*>(setting.member) ||
                    std::holds_alternative<std::filesystem::path RunConfig::*>(setting.member);
  give(settings, setting, text ? Value(word) : parse_value(word), what);
}

void check_settings(const RunConfig& settings) {
  // A bound that is left at its default adapts to the other one.
  const RunConfig defaults;
  if (settings.min_repeats > settings.max_repeats && settings.min_repeats != defaults.min_repeats &&
      settings.max_repeats != defaults.max_repeats)
    throw UserError(
        fmt::format("min_repeats ({}) is greater than max_repeats ({})", settings.min_repeats, settings.max_repeats));
}

void use_objective_of_settings(ProblemFile& problem) {
  if (!problem.run.objective.empty()) problem.objective = {.text = problem.run.objective, .direction = {}, .place = {}};
}

GivenValue value_of(const RunConfig& settings, const Setting& setting) {
  return std::visit(
      [&](auto member) -> GivenValue {
        const auto& value = settings.*member;
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::vector<std::string>>)
          return std::vector<Value>(value.begin(), value.end());
        else if constexpr (std::is_same_v<T, std::map<std::string, Value>>)
          return value;
        else if constexpr (std::is_same_v<T, std::filesystem::path>)
          return Value(value.string());
        else if constexpr (std::is_same_v<T, std::uint64_t>)
          return Value(static_cast<std::int64_t>(value));
        else if constexpr (std::is_same_v<T, double>)  // a precision of 1 and more is read as a percentage only
          return &value == &settings.precision && value >= 1 ? Value(fmt::format("{}%", 100 * value)) : Value(value);
        else
          return Value(value);
      },
      setting.member);
}

bool is_default(const RunConfig& settings, const Setting& setting) {
  static const RunConfig defaults;
  return std::visit([&](auto member) { return settings.*member == defaults.*member; }, setting.member);
}

std::string default_text(const Setting& setting) {
  if (!setting.otherwise.empty()) return std::string(setting.otherwise);
  const std::string text = std::visit([](const auto& value) { return text_of(value); }, value_of(RunConfig(), setting));
  return setting.unit.empty() ? text : fmt::format("{} {}", text, setting.unit);
}

std::string setting_rows() {
  std::string rows = "| key | option | meaning | default | determines results |\n| --- | --- | --- | --- | --- |\n";
  for (const Setting& setting : kTable) {
    std::string otherwise = default_text(setting);
    if (setting.is_flag()) otherwise = otherwise == "True" ? "true" : "false";
    rows += fmt::format("| `{}` | `{}` | {} | {} | {} |\n", setting.name,
                        setting.option.substr(setting.option.rfind(',') + 1), setting.help, otherwise,
                        setting.determines_results() ? "yes" : "");
  }
  return rows;
}

std::string conditions_of(const RunConfig& settings, bool energy) {
  std::string text = fixed_conditions(settings, energy);
  for (const Setting& setting : kTable) {
    if (setting.determines != results || is_default(settings, setting)) continue;
    text += fmt::format(", {} {}", setting.name,
                        std::visit([](const auto& value) { return text_of(value); }, value_of(settings, setting)));
    if (!setting.unit.empty()) text += fmt::format(" {}", setting.unit);
  }
  return text;
}

}  // namespace ergotune
