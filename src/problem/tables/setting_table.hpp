// The settings, declared once: what each is called, what it says, and whether it determines results. Problem files
// ([tune]), the command line, Python, the documents of workers and store, and a session's conditions walk this table.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ergotune/problem_file.hpp"

namespace ergotune {

/// Whether another value gives other results: then it is part of a session's conditions.
enum class Determines {
  nothing,  ///< only what is searched, when to give up, or where things lie
  results,  ///< told among the conditions where it is not the default
  /// The same, as part of the fixed text at the beginning of conditions_of().
  results_in_fixed_text,
};

struct Setting {
  using Member = std::variant<bool RunConfig::*, int RunConfig::*, double RunConfig::*, std::uint64_t RunConfig::*,
                              std::string RunConfig::*, std::filesystem::path RunConfig::*,
                              std::vector<std::string> RunConfig::*, std::map<std::string, Value> RunConfig::*>;
  /// The key in [tune] of a problem file, and the keyword in Python.
  std::string_view name;
  /// Of the command, as "-d,--device". Where the setting is true or false: turns it into what is not the default.
  std::string_view option;
  Member member;
  std::string_view unit;  ///< SI; empty where there is none
  Determines determines = Determines::nothing;
  std::string_view help;
  /// What holds where nothing is said, where the default's value does not say it.
  std::string_view otherwise = {};
  /// Of numbers: at least this much, or more than this.
  double least = 0;
  bool more_than_least = false;
  /// Says which configurations are measured, not how one is: of no use to a verb that does not search.
  bool only_searching = false;

  bool determines_results() const { return determines != Determines::nothing; }
  bool is_flag() const { return std::holds_alternative<bool RunConfig::*>(member); }
  /// Takes several values, or NAME=VALUE pairs.
  bool is_list() const;
};

/// All of them, in the order in which they are shown.
std::span<const Setting> setting_table();
/// nullptr where there is none.
const Setting* find_setting(std::string_view name);
std::vector<std::string> setting_names();

/// What files and programs give: a value, a list of them, or values by name.
using GivenValue = std::variant<Value, std::vector<Value>, std::map<std::string, Value>>;

/// Sets one. `what` names it in complaints ("\"jobs\" in [tune]"). Throws UserError for a value of another kind or out
/// of bounds. Another strategy forgets the options of the one before; options are added to those that are there.
void give(RunConfig& settings, const Setting& setting, const GivenValue& value, const std::string& what);
/// A word of a command line as what it reads as: a number or a boolean where it is one.
Value parse_value(const std::string& text);
/// The same from the words of a command line: several for a list; seconds may be written 500ms, 8s, 2min or 1h.
void parse_setting(RunConfig& settings, const Setting& setting, const std::vector<std::string>& words,
                   const std::string& what);
/// Throws UserError where settings contradict each other.
void check_settings(const RunConfig& settings);

GivenValue value_of(const RunConfig& settings, const Setting& setting);
bool is_default(const RunConfig& settings, const Setting& setting);
/// The default as help and documents tell it: "0.01", "30 s", "one per core"; empty where there is nothing to say.
std::string default_text(const Setting& setting);
/// The table of all settings in Markdown, as docs/problem-file.md has it.
std::string setting_rows();

/// How results were measured, as sessions are found by it: every setting that determines them. `energy`: it is measured
/// too.
std::string conditions_of(const RunConfig& settings, bool energy);

}  // namespace ergotune
