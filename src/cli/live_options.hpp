// Shared by verbs that measure: the settings as command-line options (the problem file can contain each of them; the
// command line takes precedence), and measurements as JSON.
#pragma once

#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/verb.hpp"
#include "problem/tables/setting_table.hpp"
#include "report/result_document.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune::cli {

/// The options of the settings table, with the values given on the command line.
class SettingOptions {
 public:
  /// Adds the options to a verb: those for searching, or those for measuring.
  void add_to(Verb verb, bool searching);
  /// Applies the given values, then checks all settings. Throws UserError.
  void apply(RunConfig& settings) const;
  /// The value given for an option as text; empty: not given.
  std::string text(std::string_view name) const;

 private:
  struct Given {
    const Setting* setting;
    std::vector<std::string> arguments;
    std::optional<std::string> word;
    bool flag = false;
  };
  std::deque<Given> given_;  ///< a deque, since CLI11 keeps references to its elements
};

struct LiveArguments {
  std::string file;
  SettingOptions settings;
  std::vector<std::string> observers, set;
  bool in_process = false, take_over = false;
};

/// Adds to a verb: FILE, the settings of measuring, --observe, and options without a place in the problem file.
void add_live_options(Verb verb, LiveArguments& arguments);
/// Adds --set, which is read by sizes_of() or size_of().
void add_set_option(Verb verb, std::vector<std::string>& set);
/// What --set says: for each combination of the values that were given, constants that replace the problem's. One
/// without any where nothing was given. Throws UserError.
std::vector<Constants> sizes_of(const std::vector<std::string>& set);
/// The same for verbs that have one size; throws UserError for several.
Constants size_of(const std::vector<std::string>& set);
/// The problem with the settings, the objective and the observers of the command line, and the constants of `size`, or
/// of the one combination that --set gives.
ProblemFile load_with(const LiveArguments& arguments, const Constants& size);
ProblemFile load_with(const LiveArguments& arguments);
SetupOptions setup_with(const LiveArguments& arguments, const RunConfig& run);

using ergotune::number_or_null;
using ergotune::to_json;

}  // namespace ergotune::cli
