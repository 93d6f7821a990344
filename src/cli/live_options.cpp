#include "cli/live_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "base/text.hpp"
#include "ergotune/problem_file.hpp"
#include "evaluate/recorded/replay.hpp"
#include "measure/observers/observer_registry.hpp"
#include "report/size_sweep.hpp"

namespace ergotune::cli {

namespace {

/// "--sensor" for "-d,--sensor".
std::string long_name(const Setting& setting) {
  return std::string(setting.option.substr(setting.option.rfind(',') + 1));
}

bool on_by_default(const Setting& setting) { return default_text(setting) == "True"; }

std::string help_of(const Setting& setting) {
  std::string help(setting.help);
  if (setting.is_flag() && !on_by_default(setting)) return help;
  if (setting.is_flag()) {
    help[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(help[0])));
    return "Do not " + help;
  }
  return fmt::format("{}{} ({})", help, setting.is_list() ? ", repeatable" : "", default_text(setting));
}

const char* kind_of(const Setting& setting) {
  if (setting.unit == "s") return "TIME";
  const bool text = setting.is_list() || std::holds_alternative<std::string RunConfig::*>(setting.member) ||
                    std::holds_alternative<std::filesystem::path RunConfig::*>(setting.member);
  return text ? "TEXT" : "NUMBER";
}

}  // namespace

void SettingOptions::add_to(Verb verb, bool searching) {
  for (const Setting& setting : setting_table()) {
    if (setting.only_searching != searching) continue;
    Given& given = given_.emplace_back(Given{&setting, {}, {}, false});
    const std::string names(setting.option);
    if (setting.is_flag()) {
      verb.add_flag(names, given.flag, help_of(setting));
    } else if (setting.is_list()) {
      verb.add_option(names, given.arguments, help_of(setting)).kind(kind_of(setting));
    } else {
      verb.add_option(names, given.word, help_of(setting)).kind(kind_of(setting));
    }
  }
}

void SettingOptions::apply(RunConfig& settings) const {
  for (const Given& given : given_) {
    const Setting& setting = *given.setting;
    if (given.flag) {
      give(settings, setting, Value(!on_by_default(setting)), long_name(setting));
    } else if (given.word) {
      parse_setting(settings, setting, {*given.word}, long_name(setting));
    } else if (!given.arguments.empty()) {
      parse_setting(settings, setting, given.arguments, long_name(setting));
    }
  }
  check_settings(settings);
}

std::string SettingOptions::text(std::string_view name) const {
  for (const Given& given : given_)
    if (given.setting->name == name && given.word) return *given.word;
  return {};
}

void add_live_options(Verb verb, LiveArguments& a) {
  verb.add_option("FILE", a.file, "Problem file (TOML, T1 JSON), or the folder of a capture")
      .required()
      .existing_path();
  a.settings.add_to(verb, false);
  std::vector<std::string> names;
  for (const ObserverDescription& observer : observers()) names.push_back(observer.name);
  verb.add_option(
      "--observe", a.observers,
      fmt::format("Observe this too: NAME or NAME:OPTION=VALUE,... of {}; repeatable", fmt::join(names, ", ")));
  add_set_option(verb, a.set);
  verb.add_flag("--take-over", a.take_over,
                "Set clocks although another process seems to have locked them (they end at the defaults)");
  verb.add_flag("--in-process", a.in_process, "Measure in this process: a kernel that crashes ends the session");
  verb.group_options("Measurement", {"--jobs", "--precision", "--time-limit", "--compile-time-limit", "--max-seconds",
                                     "--warm-up", "--min-repeats", "--max-repeats", "--cold-cache", "--no-verify",
                                     "--no-cache", "--cache-dir", "--observe", "--in-process"});
  verb.group_options("Energy and clocks",
                     {"--sensor", "--control", "--energy-budget", "--reference", "--quiet-node", "--take-over"});
  verb.group_options("Several nodes", {"--node-command", "--nodes", "--node-silence"});
}

void add_set_option(Verb verb, std::vector<std::string>& set) {
  verb.add_option("--set", set,
                  "Constants of the problem: NAME=VALUE, or NAME,NAME=VALUE for several that are the same; repeatable")
      .take_all();
}

std::vector<Constants> sizes_of(const std::vector<std::string>& set) {
  std::vector<Constants> sizes(1);
  for (const std::string& text : set) {
    const std::size_t equals = text.find('=');
    const std::vector<std::string> names = split(text.substr(0, equals));
    const std::vector<std::string> values = equals == std::string::npos ? names : split(text.substr(equals + 1));
    if (equals == std::string::npos || names.empty() || values.empty())
      throw UserError(fmt::format("--set takes NAME=VALUE, not \"{}\"", text));
    for (const std::string& value : values)
      if (value.find('=') != std::string::npos)
        throw UserError(
            fmt::format("\"{}\" is not a value of {}; give each constant its own --set", value, names.front()));
    std::vector<Constants> with;
    for (const Constants& before : sizes)
      for (const std::string& value : values) {
        Constants& constants = with.emplace_back(before);
        for (const std::string& name : names) constants[name] = parse_value(value);
      }
    sizes = std::move(with);
  }
  return sizes;
}

Constants size_of(const std::vector<std::string>& set) {
  std::vector<Constants> sizes = sizes_of(set);
  if (sizes.size() > 1) throw UserError("--set with several values is for tune without a plan: give one value");
  return std::move(sizes.front());
}

ProblemFile load_with(const LiveArguments& a) { return load_with(a, size_of(a.set)); }

ProblemFile load_with(const LiveArguments& a, const Constants& size) {
  ProblemFile problem = load_problem_or_recording(a.file, a.settings.text("device"));
  set_constants(problem, size);
  a.settings.apply(problem.run);
  use_objective_of_settings(problem);
  // Reported before anything is compiled.
  for (const std::string& text : a.observers) ask_for_observer(problem.observers, text);
  check_observers(problem.observers);
  return problem;
}

SetupOptions setup_with(const LiveArguments& a, const RunConfig& run) {
  SetupOptions options;
  options.run = run;
  options.take_over = a.take_over;
  options.in_process = a.in_process;
  // even with --quiet: users who wait need to know the reason
  options.announce = [](const std::string& note) { fmt::print(stderr, "note: {}\n", note); };
  return options;
}

}  // namespace ergotune::cli
