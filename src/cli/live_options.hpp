// What verbs that measure share: the settings as options (every one has a place in the problem file too; the command
// line wins), and measurements as JSON.
#pragma once

#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/verb.hpp"
#include "problem/tables/setting_table.hpp"
#include "report/result_json.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune::cli {

/// The options of the table of settings, as far as they were given.
class SettingOptions {
 public:
  /// Adds them to a verb: those of measuring, or those of searching.
  void add_to(Verb verb, bool searching);
  /// Sets what was given, then checks all. Throws UserError.
  void apply(RunConfig& settings) const;
  /// The text that was given for one, or empty.
  std::string text(std::string_view name) const;

 private:
  struct Given {
    const Setting* setting;
    std::vector<std::string> words;
    std::optional<std::string> word;
    bool flag = false;
  };
  std::deque<Given> given_;  ///< a deque: the command line's reader keeps references
};

struct LiveArguments {
  std::string file;
  SettingOptions settings;
  std::vector<std::string> observers, set;
  bool in_process = false, take_over = false;
};

/// Adds to a verb: FILE, the settings of measuring, --observe and what holds for this run alone.
void add_live_options(Verb verb, LiveArguments& arguments);
/// What --set says: for each combination of the values that were given, constants that replace the problem's. One
/// without any where nothing was given. Throws UserError.
std::vector<Constants> sizes_of(const std::vector<std::string>& set);
/// The problem with the settings, the objective and the observers of the command line, and its constants: of `size`,
/// else the one combination that --set gives.
ProblemFile load_with(const LiveArguments& arguments, const Constants* size = nullptr);
SetupOptions setup_with(const LiveArguments& arguments, const RunConfig& run);

using ergotune::number_or_null;
using ergotune::to_json;

}  // namespace ergotune::cli
