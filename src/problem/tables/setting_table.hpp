// The settings of a run, declared once: name, meaning, and whether a setting determines results. Problem files
// ([tune]), the command line, Python, the documents of workers and of the store, and the session key are derived from
// this table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ergotune/problem_file.hpp"
#include "ergotune/run_config.hpp"

namespace ergotune {

/// Whether a setting changes results. If it does, it is one of the measurement settings in the session key.
enum class Determines {
  nothing,  ///< affects only which configurations are measured, time limits or locations
  results,  ///< part of the measurement settings if it differs from the default
  /// part of the fixed text with which conditions_of() begins
  results_in_fixed_text,
};

struct Setting {
  using Member = std::variant<bool RunConfig::*, int RunConfig::*, double RunConfig::*, std::uint64_t RunConfig::*,
                              std::string RunConfig::*, std::filesystem::path RunConfig::*,
                              std::vector<std::string> RunConfig::*, std::map<std::string, Value> RunConfig::*>;
  /// Key in [tune] of a problem file, and keyword argument in Python.
  std::string_view name;
  /// Option of the command, such as "-d,--device". For a boolean setting the option selects the opposite of the
  /// default.
  std::string_view option;
  Member member;
  std::string_view unit;  ///< SI; empty: none
  Determines determines = Determines::nothing;
  std::string_view help;
  /// Text of the default, for settings whose initial value does not show it.
  std::string_view otherwise = {};
  /// Numbers: the minimum, inclusive unless exclusive_minimum is set.
  double least = 0;
  bool exclusive_minimum = false;
  /// The setting decides which configurations are measured, not how; it does not apply to commands that do not search.
  bool only_searching = false;

  bool determines_results() const { return determines != Determines::nothing; }
  bool is_flag() const { return std::holds_alternative<bool RunConfig::*>(member); }
  /// True if the setting takes several values, or NAME=VALUE pairs.
  bool is_list() const;
};

/// All settings, in the order in which they are displayed.
std::span<const Setting> setting_table();
/// Returns nullptr for an unknown name.
const Setting* find_setting(std::string_view name);
std::vector<std::string> setting_names();

/// A value as files and programs give it: a single value, a list, or values by name.
using GivenValue = std::variant<Value, std::vector<Value>, std::map<std::string, Value>>;

/// Sets a setting. `what` names it in messages ("\"jobs\" in [tune]"). Throws UserError for a value of the wrong kind
/// or out of bounds. Setting a different strategy clears the previous strategy's options; strategy options are merged
/// into the present ones.
void give(RunConfig& settings, const Setting& setting, const GivenValue& value, const std::string& what);
/// A word of a command line as what it reads as: a number or a boolean where it is one.
Value parse_value(const std::string& text);
/// The same from the words of a command line: several for a list; seconds may be written 500ms, 8s, 2min or 1h.
void parse_setting(RunConfig& settings, const Setting& setting, const std::vector<std::string>& words,
                   const std::string& what);
/// Throws UserError for settings that contradict each other.
void check_settings(const RunConfig& settings);
/// Replaces the problem's objective by that of its settings, if they have one. Called once all settings are given.
void use_objective_of_settings(ProblemFile& problem);

GivenValue value_of(const RunConfig& settings, const Setting& setting);
bool is_default(const RunConfig& settings, const Setting& setting);
/// Returns the default for help and documents: "0.01", "30 s", "one per core"; empty if there is none to show.
std::string default_text(const Setting& setting);
/// Returns the table of all settings in Markdown, for docs/problem-file.md.
std::string setting_rows();

/// Returns the measurement settings as text, a part of the session key: every setting that determines results.
/// `energy`: energy is measured, too.
std::string conditions_of(const RunConfig& settings, bool energy);

}  // namespace ergotune
